// A heap of the links and paths that may end the next growth of a progressive filling, the least
// level on top.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace shardwright::sim {

// Shares that differ by less than this, relatively, are one level: symmetric flows get one rate
// exactly, and so end together.
inline constexpr double kTie = 1e-12;
// A path that is held fixed is left alone while its rate is right within this, relatively.
inline constexpr double kAccept = 1e-11;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A link that is used up at a level, or a path that reaches a limit of its own there.
struct LevelCandidate {
  double level;
  std::uint32_t id;
  bool is_path;
};

// A binary heap that is filled, then ordered once, and from then on only loses its top or gives it
// a higher level.
class LevelHeap {
 public:
  void clear() { heap_.clear(); }
  void add(LevelCandidate candidate) { heap_.push_back(candidate); }
  void order() {
    std::make_heap(heap_.begin(), heap_.end(),
                   [](const auto& a, const auto& b) { return a.level > b.level; });
  }

  bool empty() const { return heap_.empty(); }
  const LevelCandidate& least() const { return heap_.front(); }
  // All of them, in no order.
  std::span<const LevelCandidate> candidates() const { return heap_; }

  void drop_least() {
    const LevelCandidate last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
  }
  void raise_least(double level) {
    LevelCandidate candidate = heap_.front();
    candidate.level = level;
    sink(candidate);
  }

 private:
  // Lets a candidate sink from the top to its place: all the way along the lesser children and up
  // again, for most come from the bottom and belong there.
  void sink(const LevelCandidate& sinking) {
    const std::size_t size = heap_.size();
    std::size_t at = 0;
    for (std::size_t child = 1; child < size; child = 2 * at + 1) {
      const bool second = child + 1 < size && heap_[child + 1].level < heap_[child].level;
      child += second ? 1 : 0;
      heap_[at] = heap_[child];
      at = child;
    }
    for (; at > 0 && heap_[(at - 1) / 2].level > sinking.level; at = (at - 1) / 2)
      heap_[at] = heap_[(at - 1) / 2];
    heap_[at] = sinking;
  }

  std::vector<LevelCandidate> heap_;
};

}  // namespace shardwright::sim
