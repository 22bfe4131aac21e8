#include "gui/timeline/causal_order.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/program/rank_grid.hpp"

namespace shardwright::gui {
namespace {

// A span that ends this much later still counts as earlier: the clocks of a measurement differ, and
// a prediction is rounded.
constexpr double kTolerance = 1e-9;

}  // namespace

CausalOrder::CausalOrder(std::shared_ptr<const Timeline> timeline, const Program* program)
    : timeline_(std::move(timeline)) {
  const std::vector<Span>& spans = timeline_->spans;
  for (std::uint32_t i = 0; i < spans.size(); ++i) by_end_[spans[i].rank].push_back(i);
  for (auto& [rank, of_rank] : by_end_) {
    std::stable_sort(of_rank.begin(), of_rank.end(), [&](std::uint32_t a, std::uint32_t b) {
      return spans[a].end() < spans[b].end();
    });
  }
  for (const Flow& flow : timeline_->flows) {
    other_end_[flow.from] = flow.to;
    other_end_[flow.to] = flow.from;
  }
  if (program != nullptr && describes(*program)) find_waits(*program);
}

std::vector<std::uint32_t> CausalOrder::critical_path() const {
  std::vector<std::uint32_t> path;
  // Two spans without length may each come before the other.
  std::vector<bool> passed(timeline_->spans.size(), false);
  for (std::optional<std::uint32_t> at = last(); at && !passed[*at]; at = before(*at)) {
    passed[*at] = true;
    path.push_back(*at);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

// True if the timeline holds the ops of the first rank of each stage one after the other, as
// predictions do.
bool CausalOrder::describes(const Program& program) const {
  std::size_t first = 0;
  if (timeline_->origin != TimelineOrigin::Predicted) return false;
  const RankGrid grid(program.plan);
  for (const RankProgram& stage : program.stages) {
    const std::int64_t rank = grid.rank_at({stage.stage, 0});
    for (const Call& call : stage.calls) {
      const std::vector<Op>& ops = program.blocks[call.block].ops;
      for (std::size_t i = 0; i < ops.size(); ++i) {
        const std::size_t index = first + call.first_op + i;
        if (index >= timeline_->spans.size()) return false;
        const Span& there = timeline_->spans[index];
        if (there.rank != rank || there.kind != ops[i].kind || there.layer != call.layer)
          return false;
      }
    }
    first += stage.ops;
  }
  return first == timeline_->spans.size();
}

void CausalOrder::find_waits(const Program& program) {
  first_wait_.assign(1, 0);
  std::uint32_t first = 0;
  for (const RankProgram& stage : program.stages) {
    std::map<std::pair<Stream, std::int32_t>, std::uint32_t> last_of_queue;
    for (std::size_t c = 0; c < stage.calls.size(); ++c) {
      const Call& call = stage.calls[c];
      std::size_t wait = call.first_wait;
      const std::size_t end =
          c + 1 < stage.calls.size() ? stage.calls[c + 1].first_wait : stage.waits.size();
      const std::vector<Op>& ops = program.blocks[call.block].ops;
      for (std::uint32_t i = 0; i < ops.size(); ++i) {
        const std::uint32_t number = call.first_op + i;
        for (const std::uint16_t on : ops[i].waits) waits_.push_back(first + call.first_op + on);
        for (; wait < end && stage.waits[wait].op == number; ++wait)
          waits_.push_back(first + stage.waits[wait].on);
        const std::uint32_t index = first + number;
        const auto [last, is_new] =
            last_of_queue.try_emplace({ops[i].stream, span(index).peer}, index);
        if (!is_new) waits_.push_back(std::exchange(last->second, index));
        first_wait_.push_back(static_cast<std::uint32_t>(waits_.size()));
      }
    }
    first += stage.ops;
  }
}

std::optional<std::uint32_t> CausalOrder::last() const {
  std::optional<std::uint32_t> last;
  for (const auto& [rank, of_rank] : by_end_) {
    if (!last || span(*last).end() < span(of_rank.back()).end()) last = of_rank.back();
  }
  return last;
}

std::optional<std::uint32_t> CausalOrder::before(std::uint32_t index) const {
  std::optional<std::uint32_t> best = before_on_its_rank(index, span(index).start.value());
  const auto consider = [&](std::optional<std::uint32_t> other) {
    if (other && (!best || span(*best).end() < span(*other).end())) best = other;
  };
  if (const auto other = other_end_.find(index); other != other_end_.end())
    consider(before_on_its_rank(other->second, span(index).start.value()));
  if (span(index).group && joins_stages(*span(index).group)) {
    for (const auto& [rank, of_rank] : by_end_) {
      if (const auto twin = twin_on(of_rank, index))
        consider(before_on_its_rank(*twin, span(index).start.value()));
    }
  }
  return best;
}

// The same collective on another rank: it ends at the same time.
std::optional<std::uint32_t> CausalOrder::twin_on(const std::vector<std::uint32_t>& of_rank,
                                                  std::uint32_t index) const {
  const double end = span(index).end().value();
  auto at =
      std::lower_bound(of_rank.begin(), of_rank.end(), end - kTolerance,
                       [&](std::uint32_t i, double time) { return span(i).end().value() < time; });
  for (; at != of_rank.end() && span(*at).end().value() <= end + kTolerance; ++at) {
    if (*at != index && span(*at).name == span(index).name && span(*at).group == span(index).group)
      return *at;
  }
  return std::nullopt;
}

// Returns the last span to end, no later than `start`, among those that this one may have waited
// for.
std::optional<std::uint32_t> CausalOrder::before_on_its_rank(std::uint32_t index,
                                                             double start) const {
  const double limit = std::min(start, span(index).start.value()) + kTolerance;
  std::optional<std::uint32_t> best;
  if (!first_wait_.empty()) {
    for (std::uint32_t w = first_wait_[index]; w < first_wait_[index + 1]; ++w) {
      const std::uint32_t on = waits_[w];
      if (span(on).end().value() > limit || on == index) continue;
      if (!best || span(*best).end() < span(on).end()) best = on;
    }
    return best;
  }
  const std::vector<std::uint32_t>& of_rank = by_end_.at(span(index).rank);
  auto at =
      std::upper_bound(of_rank.begin(), of_rank.end(), limit,
                       [&](double time, std::uint32_t i) { return time < span(i).end().value(); });
  // A span without length must not follow itself.
  while (at != of_rank.begin()) {
    --at;
    if (span(*at).start.value() < span(index).start.value() - kTolerance ||
        (span(*at).duration.value() > kTolerance && *at != index))
      return *at;
  }
  return std::nullopt;
}

}  // namespace shardwright::gui
