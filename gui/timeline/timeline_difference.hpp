// Two timelines of a step op by op: which op of one is which of the other, and which kinds of ops
// make the difference. This file knows no widget.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <tuple>
#include <vector>

#include "core/timeline/timeline.hpp"
#include "gui/models/table_text.hpp"
#include "gui/style/palette.hpp"

namespace shardwright::gui {

// The ops of one name and phase that both timelines have.
struct OpDifference {
  std::string name;
  Phase phase = Phase::Forward;
  std::size_t count = 0;
  Seconds first, second;
};

// What is equal for the same op of two ranks.
inline auto identity_of(const Span& span) {
  return std::tie(span.stream, span.name, span.phase, span.layer, span.microbatch);
}

// The op with the same rank's label, stream, name, phase, layer and microbatch is the same op, and
// of several such the one with as many before it. Of ranks with one label the n-th of one timeline
// is compared with the n-th of the other, or with the first where there are fewer.
class TimelineDifference {
 public:
  TimelineDifference() = default;
  // Ends early, with fewer ops, once `stop` is requested.
  TimelineDifference(const Timeline& first, const Timeline& second,
                     const std::stop_token& stop = {});

  // The role by which an op of a timeline, the first (0) or the second (1), took longer in the
  // second.
  Role role(std::size_t side, std::size_t span) const { return roles_[side][span]; }
  std::optional<std::uint32_t> counterpart(std::size_t side, std::size_t span) const;
  // The largest difference first.
  const std::vector<OpDifference>& ops() const { return ops_; }
  // The number of ops that the other timeline does not have.
  std::size_t unmatched(std::size_t side) const { return unmatched_[side]; }

 private:
  void sum_up(const Timeline& first, const Timeline& second);

  // By side and index of the span.
  std::array<std::vector<Role>, 2> roles_;
  std::array<std::vector<std::uint32_t>, 2> counterparts_;
  std::vector<OpDifference> ops_;
  std::array<std::size_t, 2> unmatched_{};
};

// The role of an op that took `second` instead of `first`.
Role role_of_change(Seconds first, Seconds second);

// The `most` largest differences as texts. `sides` are the titles of the timelines.
TextTable difference_table(const TimelineDifference& difference, const QStringList& sides,
                           std::size_t most);

}  // namespace shardwright::gui
