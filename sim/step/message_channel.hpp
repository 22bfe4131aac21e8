// The messages of one pair of ranks in one direction of the data. They pass in order, each after
// both ranks have reached it.
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
  // Notes that one rank, the sender or the receiver, has reached its next message. Returns the
  // other end if the other rank has reached it before.
  std::optional<End> post(bool sends, const End& end) {
    if (ahead_.empty()) senders_ahead_ = sends;
    if (senders_ahead_ == sends) {
      ahead_.push_back(end);
      return std::nullopt;
    }
    const End other = ahead_[first_];
    // Drops the ends of started messages once they are half of all.
    if (2 * ++first_ >= ahead_.size()) {
      ahead_.erase(ahead_.begin(), ahead_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    return other;
  }

  // Returns when a message starts that both ranks have reached at `ready`: not before the message
  // ahead of it has completed.
  double start_at(double ready) const { return std::max(ready, free_); }

  // Completes the message ahead of the others at `time`.
  void finish(double time) { free_ = time; }

 private:
  // Ends, from `first_` on, whose other rank has not reached the message; all are of one side.
  std::vector<End> ahead_;
  std::size_t first_ = 0;
  bool senders_ahead_ = false;
  // The time at which the last message completed.
  double free_ = 0.0;
};

}  // namespace shardwright::sim
