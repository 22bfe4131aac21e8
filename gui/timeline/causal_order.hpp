// Which span of a step waited for which, and the chain that the end of the step waits for.
//
// Before each span comes the one whose end let it start. With the program that is the latest to end
// of what it waits for: the op before it on its stream, its waits, and for messages and collectives
// between stages the same of the other ends. Without it (a measurement of another program) it is
// the span of the same rank that ended last before it started; for messages also of the other end's
// rank. What lies between the two is time in which the next one was not yet issued by the host.
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

// Spans are indices into `timeline->spans`.
class CausalOrder {
 public:
  // `program` may be null; it is not used where the timeline is not a prediction of it.
  explicit CausalOrder(std::shared_ptr<const Timeline> timeline, const Program* program = nullptr);

  // None at the start of the step.
  std::optional<std::uint32_t> before(std::uint32_t index) const;

  // Backwards from the span that ends last, told from the start of the step to its end. They do not
  // overlap in time.
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
  std::map<std::int32_t, std::vector<std::uint32_t>> by_end_;  // by rank
  std::unordered_map<std::uint32_t, std::uint32_t> other_end_;
  // With a program: by span, ends where the next one's begin.
  std::vector<std::uint32_t> first_wait_, waits_;
};

}  // namespace shardwright::gui
