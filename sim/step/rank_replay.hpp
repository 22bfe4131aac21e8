// The replay of a job's ranks, step after step, on links that other jobs may use too.
//
// Whoever runs it begins a step, lets the ranks run until they wait for transfers that share links,
// and passes on which of these have ended (full_replay.hpp has the rules).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/program/program.hpp"
#include "core/spec/cluster_spec.hpp"
#include "sim/step/folded_replay.hpp"
#include "sim/step/full_replay.hpp"
#include "sim/step/prices.hpp"
#include "sim/step/shared_transfers.hpp"

namespace shardwright::sim {

class RankReplay {
 public:
  // `alike`: the event level, with finish times kept. Everything passed by reference outlives this.
  RankReplay(const Program& program, const ClusterSpec& cluster, const Prices& prices,
             const FoldedReplay& alike, const FullOptions& options, JobLinks links);
  RankReplay(RankReplay&&) noexcept;
  ~RankReplay();

  // Begins the first step, or the next one after one that is over.
  void begin(double start);
  // Runs until no rank can go on. Returns false if the caller of the simulation wants to stop.
  bool go_on();
  // Takes note of the end of a transfer whose owner is this job.
  void finish_transfer(const SharedTransfers::Finished& finished);
  // True if all ops of the step have finished.
  bool is_over() const;
  // The finish of the last of them.
  double end() const;
  // The step so far; its times count from its beginning. What sharing links cost is left out.
  FullReplay report();
  // The bytes that the job has moved over each link by now.
  void add_moved(std::vector<double>& bytes_by_link) const;

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace shardwright::sim
