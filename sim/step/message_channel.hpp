// The messages of one pair of ranks in one direction of the data: they pass in order, each once
// both ranks have come to it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace shardwright::sim {

enum class ChannelSide : std::uint8_t { Sender, Receiver };

struct QueuedMessage {
  double ready = 0.0;  // when both sides had come to it
  std::uint32_t route = 0;
  double duration = 0.0;
};

class MessageChannel {
 public:
  // One side has come to its next message. If the other side has come to it too: when both have.
  std::optional<double> post(ChannelSide side, double ready) {
    std::uint32_t& posted = posted_[static_cast<std::size_t>(side)];
    const std::uint32_t other = posted_[1 - static_cast<std::size_t>(side)];
    ++posted;
    if (posted > other) {
      ahead_.push_back(ready);
      return std::nullopt;
    }
    const double both = std::max(ready, ahead_.front());
    ahead_.erase(ahead_.begin());
    return both;
  }

  // Sends the next message at once; returns its start.
  double pass(double ready, double duration) {
    const double start = std::max(ready, free_);
    free_ = start + duration;
    return start;
  }

  // Where messages take a time that is not known beforehand, they queue: true if this one can go.
  bool queue(const QueuedMessage& message) {
    waiting_.push_back(message);
    return waiting_.size() == 1;
  }
  const QueuedMessage& first() const { return waiting_.front(); }
  double start_of_first() const { return std::max(waiting_.front().ready, free_); }
  // The first message is through; true if another one can go.
  bool finish_first(double time) {
    free_ = time;
    waiting_.erase(waiting_.begin());
    return !waiting_.empty();
  }

  // The number of the next message that will be through; counts up at each call.
  std::uint32_t take_number() { return passed_++; }

 private:
  double free_ = 0.0;  // when the last message was through
  std::array<std::uint32_t, 2> posted_{};
  std::uint32_t passed_ = 0;
  std::vector<double> ahead_;           // ready times of the side that is ahead
  std::vector<QueuedMessage> waiting_;  // the first one is under way
};

}  // namespace shardwright::sim
