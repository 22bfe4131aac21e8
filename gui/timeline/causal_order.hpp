// The waits between the spans of a step, and the critical path that follows from them.
//
// The predecessor of a span is the one whose end let it start. With the program, the predecessor is
// the last to end of the ops that the span waits for: the op before it on its stream, its explicit
// waits, and for messages and collectives between stages the same ops of the other ranks. Without
// the program (a measurement of another one), it is the span that ended last on the same rank
// before this one started; for messages, spans of the other rank count as well. Time between the
// two is time in which the host had not yet issued the second one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/program/program.hpp"
#include "core/timeline/timeline.hpp"

namespace shardwright::gui {

// All functions name a span by its index into `timeline->spans`.
class CausalOrder {
 public:
  // `program` may be null. It is ignored unless the timeline is a prediction of it.
  explicit CausalOrder(std::shared_ptr<const Timeline> timeline, const Program* program = nullptr);

  // Returns the predecessor of a span, or none at the start of the step.
  std::optional<std::uint32_t> before(std::uint32_t index) const;

  // Returns the chain of predecessors of the span that ends last, from the start of the step to its
  // end. They do not overlap in time.
  std::vector<std::uint32_t> critical_path() const;

 private:
  const Span& span(std::uint32_t index) const { return timeline_->spans[index]; }
  bool describes(const Program& program) const;
  void find_waits(const Program& program);
  std::optional<std::uint32_t> last() const;
  std::optional<std::uint32_t> twin_on(const std::vector<std::uint32_t>& of_rank,
                                       std::uint32_t index) const;
  std::optional<std::uint32_t> before_on_its_rank(std::uint32_t index, double start) const;

  std::shared_ptr<const Timeline> timeline_;
  // The spans of each rank in the order of their ends.
  std::map<std::int32_t, std::vector<std::uint32_t>> by_end_;
  std::unordered_map<std::uint32_t, std::uint32_t> other_end_;
  // If there is a program, span i has the waits from waits_[first_wait_[i]] to
  // waits_[first_wait_[i + 1]].
  std::vector<std::uint32_t> first_wait_, waits_;
};

}  // namespace shardwright::gui
