// The messages of one pair of ranks in one direction of the data: they pass in order, each once
// both ranks have come to it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace shardwright::sim {

// `End` describes one rank's end of a message.
template <class End>
class MessageChannel {
 public:
  // One rank, the sender or the receiver, has come to its next message. Returns the other end if
  // the other rank has come to it before.
  std::optional<End> post(bool sends, const End& end) {
    if (ahead_.empty()) senders_ahead_ = sends;
    if (senders_ahead_ == sends) {
      ahead_.push_back(end);
      return std::nullopt;
    }
    const End other = ahead_[first_];
    // Ends that have met are forgotten when they are half of all.
    if (2 * ++first_ >= ahead_.size()) {
      ahead_.erase(ahead_.begin(), ahead_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    return other;
  }

  // Returns when a message starts to which both ranks have come at `ready`: not before the one
  // ahead of it is through.
  double start_at(double ready) const { return std::max(ready, free_); }

  // The message ahead of the others is through at `time`.
  void finish(double time) { free_ = time; }

 private:
  // Ends, from `first_` on, whose other ends have not come yet; all are of one side.
  std::vector<End> ahead_;
  std::size_t first_ = 0;
  bool senders_ahead_ = false;
  // The time at which the last message was through.
  double free_ = 0.0;
};

}  // namespace shardwright::sim
