// The progress of a run on its checkpoints.
//
// A place of the run is the time that it has run to get there without any failure: `interval` of
// work, the stall of a checkpoint, `interval` of work, …, and a last checkpoint at the end. A
// failure takes the run back to an earlier place, so that whole intervals need not be simulated.
#pragma once

#include <algorithm>
#include <cmath>

#include "sim/run/run_model.hpp"

namespace shardwright::sim {

class Progress {
 public:
  Progress() = default;
  Progress(Seconds work, Seconds interval, const CheckpointCost& checkpoint)
      : cycle_(interval + checkpoint.stall),
        // What is written after the stall is at risk while the run goes on.
        safe_delay_(std::max(Seconds(), checkpoint.safe - checkpoint.stall)),
        stored_delay_(std::max(Seconds(), checkpoint.stored - checkpoint.stall)),
        stored_every_(static_cast<double>(checkpoint.stored_every)),
        stalls_(std::ceil(work / interval * (1.0 - 1e-12)) * checkpoint.stall),
        end_(work + stalls_) {}

  Seconds end() const { return end_; }
  // From one checkpoint to the next.
  Seconds cycle() const { return cycle_; }
  Seconds place() const { return place_; }
  Seconds remaining() const { return end_ - place_; }
  // Until the run has saved its next checkpoint.
  Seconds to_next_checkpoint() const {
    return cycle_ - (place_ - std::floor(place_ / cycle_) * cycle_);
  }
  // The stalls of all checkpoints of the run.
  Seconds stalls() const { return stalls_; }

  void advance(Seconds time) {
    place_ = std::min(end_, place_ + time);
    safe_ = std::max(safe_, last_cycle(safe_delay_, 1.0));
    stored_ = std::max(stored_, last_cycle(stored_delay_, stored_every_));
  }
  // Saves the state where the run is, in the store.
  void save() { safe_ = stored_ = place_; }
  // Other replicas hold the state where the run is.
  void keep() { safe_ = place_; }
  // Goes back to the last checkpoint that is safe, or with `severe` stored; returns the time that
  // is lost.
  Seconds go_back(bool severe) {
    const Seconds to = severe ? stored_ : safe_;
    const Seconds lost = place_ - to;
    place_ = safe_ = to;
    return lost;
  }

 private:
  Seconds last_cycle(Seconds delay, double every) const {
    const double cycles = std::floor((place_ - delay) / (every * cycle_) * (1.0 + 1e-12));
    return std::max(0.0, cycles) * every * cycle_;
  }

  Seconds cycle_;
  Seconds safe_delay_, stored_delay_;
  double stored_every_ = 1.0;
  Seconds stalls_;
  Seconds end_;
  Seconds place_;
  // The places of the last checkpoints that are safe, and stored.
  Seconds safe_, stored_;
};

}  // namespace shardwright::sim
