#include "gui/timeline/timeline_difference.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <type_traits>

#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
// A change by less than kUnchanged counts as none, and one by kLarge or more as large.
constexpr double kUnchanged = 0.05, kLarge = 0.2;
// The least difference that is listed, as a share of the largest.
constexpr double kLeastOfLargest = 1e-3;

struct Place {
  std::uint64_t hash = 0;
  double start = 0.0;
  std::uint32_t span = 0;

  auto operator<=>(const Place&) const = default;
};

std::uint64_t hash_of(const Span& span) {
  std::uint64_t hash = 0;
  const auto add = [&](const auto& part) {
    hash = (hash ^ std::hash<std::decay_t<decltype(part)>>()(part)) * 0x9e3779b97f4a7c15ULL;
  };
  std::apply([&](const auto&... parts) { (add(parts), ...); }, identity_of(span));
  return hash ^ hash >> 32U;
}

// The same ops lie next to each other, in the order of their starts.
using Places = std::vector<Place>;

std::map<std::int32_t, Places> places_by_rank(const Timeline& timeline) {
  std::map<std::int32_t, Places> places;
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    const Span& span = timeline.spans[i];
    places[span.rank].push_back({hash_of(span), span.start.value(), static_cast<std::uint32_t>(i)});
  }
  for (auto& [rank, of_rank] : places) std::sort(of_rank.begin(), of_rank.end());
  return places;
}

std::map<std::string, std::vector<std::int32_t>> ranks_by_label(const Timeline& timeline) {
  std::map<std::string, std::vector<std::int32_t>> ranks;
  for (const TimelineRank& rank : timeline.ranks) ranks[rank.label].push_back(rank.rank);
  return ranks;
}

// Calls `found` with the spans of two ranks that are the same op.
template <class Found>
void join(const Places& own, const Places& other, const Found& found) {
  auto there = other.begin();
  for (auto here = own.begin(); here != own.end();) {
    while (there != other.end() && there->hash < here->hash) ++there;
    const std::uint64_t hash = here->hash;
    for (; here != own.end() && here->hash == hash; ++here) {
      if (there == other.end() || there->hash != hash) continue;
      found(here->span, there->span);
      ++there;
    }
  }
}

}  // namespace

Role role_of_change(Seconds first, Seconds second) {
  if (first.value() <= 0.0) return second.value() <= 0.0 ? Role::Unchanged : Role::MuchLonger;
  const double change = second / first - 1.0;
  if (std::abs(change) < kUnchanged) return Role::Unchanged;
  if (change < 0.0) return change <= -kLarge ? Role::MuchShorter : Role::Shorter;
  return change >= kLarge ? Role::MuchLonger : Role::Longer;
}

TimelineDifference::TimelineDifference(const Timeline& first, const Timeline& second,
                                       const std::stop_token& stop) {
  const std::array timelines = {&first, &second};
  for (std::size_t side = 0; side < 2; ++side) {
    roles_[side].assign(timelines[side]->spans.size(), Role::OnlyHere);
    counterparts_[side].assign(timelines[side]->spans.size(), kNone);
  }
  const std::array places = {places_by_rank(first), places_by_rank(second)};
  const std::array labels = {ranks_by_label(first), ranks_by_label(second)};
  for (std::size_t side = 0; side < 2; ++side) {
    for (const auto& [label, ranks] : labels[side]) {
      const auto others = labels[1 - side].find(label);
      if (others == labels[1 - side].end()) continue;
      for (std::size_t i = 0; i < ranks.size() && !stop.stop_requested(); ++i) {
        const std::int32_t other = others->second[i < others->second.size() ? i : 0];
        const auto own = places[side].find(ranks[i]), there = places[1 - side].find(other);
        if (own == places[side].end() || there == places[1 - side].end()) continue;
        join(own->second, there->second, [&](std::uint32_t span, std::uint32_t counterpart) {
          const Span& mine = timelines[side]->spans[span];
          const Span& theirs = timelines[1 - side]->spans[counterpart];
          if (identity_of(mine) != identity_of(theirs)) return;  // Two hashes may be equal.
          counterparts_[side][span] = counterpart;
          roles_[side][span] = side == 0 ? role_of_change(mine.duration, theirs.duration)
                                         : role_of_change(theirs.duration, mine.duration);
        });
      }
    }
  }
  sum_up(first, second);
}

void TimelineDifference::sum_up(const Timeline& first, const Timeline& second) {
  std::map<std::pair<std::string_view, Phase>, OpDifference> sums;
  for (std::size_t i = 0; i < first.spans.size(); ++i) {
    if (counterparts_[0][i] == kNone) continue;
    const Span& span = first.spans[i];
    OpDifference& sum = sums[{span.name, span.phase}];
    ++sum.count;
    sum.first += span.duration;
    sum.second += second.spans[counterparts_[0][i]].duration;
  }
  for (std::size_t side = 0; side < 2; ++side)
    unmatched_[side] = static_cast<std::size_t>(
        std::count(counterparts_[side].begin(), counterparts_[side].end(), kNone));
  for (auto& [key, sum] : sums) {
    sum.name = key.first;
    sum.phase = key.second;
    ops_.push_back(std::move(sum));
  }
  const auto size = [](const OpDifference& op) { return std::abs((op.second - op.first).value()); };
  std::stable_sort(ops_.begin(), ops_.end(),
                   [&](const auto& a, const auto& b) { return size(a) > size(b); });
}

std::optional<std::uint32_t> TimelineDifference::counterpart(std::size_t side,
                                                             std::size_t span) const {
  const std::uint32_t found = counterparts_[side][span];
  return found == kNone ? std::nullopt : std::optional(found);
}

TextTable difference_table(const TimelineDifference& difference, const QStringList& sides,
                           std::size_t most) {
  TextTable table;
  table.header = {u"op"_s, u"difference"_s, sides[0], sides[1], u"spans"_s, u"phase"_s};
  for (const OpDifference& op : difference.ops()) {
    const Seconds change = op.second - op.first;
    const Seconds largest = difference.ops().front().second - difference.ops().front().first;
    // What follows is rounding.
    if (table.rows.size() == most || change.value() == 0.0 ||
        std::abs(change / largest) < kLeastOfLargest)
      break;
    const QString sign = change.value() < 0.0 ? u"−"_s : u"+"_s;
    table.rows.push_back({to_qstring(op.name), sign + time_text(Seconds(std::abs(change.value()))),
                          time_text(op.first), time_text(op.second), count_text(op.count),
                          to_qstring(name_of(op.phase)).replace(u'_', u' ')});
  }
  return table;
}

}  // namespace shardwright::gui
