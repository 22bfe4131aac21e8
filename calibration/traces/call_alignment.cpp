#include "calibration/traces/call_alignment.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "core/base/large_json_file.hpp"

namespace shardwright::calibration {
namespace {

using Position = std::ptrdiff_t;

// Recordings of one run that start further apart are not matched by order.
constexpr Position kFurthestShift = 512;
// The clocks of hosts may differ by milliseconds: a steady distance counts for more than a short
// one.
constexpr double kWeightOfClocks = 0.001;
// Shifts at which fewer calls agree than this part of those at the best one are out of the
// question.
constexpr double kAgreement = 0.5;
// The number of other shifts, those with the steadiest distances, that are tried on the whole
// lists.
constexpr std::size_t kMostTried = 64;
// Shifts whose distances scatter by up to this factor more than those of the steadiest one are as
// steady.
constexpr double kAsSteady = 2.0;
// The part of the calls whose distances are taken as the usual one: a gap shifts those behind it.
constexpr double kUsualPart = 0.6;
// How far behind a call that lacks its partner the next pair is searched, with calls missing in one
// list and in both.
constexpr Position kLongestGap = 32, kLongestDoubleGap = 4;
// A gap has to explain the times by this factor better than none.
constexpr double kClearlyBetter = 4.0;

template <class T>
bool may_be_equal(const std::optional<T>& a, const std::optional<T>& b) {
  return !a || !b || *a == *b;
}

bool may_be_same(const RankCall& a, const RankCall& b) {
  return a.kind == b.kind && may_be_equal(a.arguments->bytes, b.arguments->bytes) &&
         may_be_equal(a.arguments->group_size, b.arguments->group_size) &&
         may_be_equal(a.arguments->sequence, b.arguments->sequence);
}

void throw_if_stopped(const std::stop_token& stop) {
  if (stop.stop_requested()) throw ReadingStopped();
}

// The position of the call whose end is nearest to a time.
Position nearest_end(const RankCalls& calls, double time) {
  const auto later =
      std::lower_bound(calls.begin(), calls.end(), time,
                       [](const RankCall& call, double wanted) { return call.end < wanted; });
  const Position position = later - calls.begin();
  const bool earlier_is_nearer =
      later == calls.end() ||
      (later != calls.begin() && time - std::prev(later)->end < later->end - time);
  return earlier_is_nearer ? position - 1 : position;
}

// What two lists have in common, as positions that may lie outside of them.
class TwoLists {
 public:
  TwoLists(const RankCalls& first, const RankCalls& second) : first_(first), second_(second) {}

  Position first_size() const { return static_cast<Position>(first_.size()); }
  Position second_size() const { return static_cast<Position>(second_.size()); }
  bool has(Position i, Position j) const {
    return 0 <= i && i < first_size() && 0 <= j && j < second_size();
  }
  const RankCall& first(Position i) const { return first_[static_cast<std::size_t>(i)]; }
  const RankCall& second(Position j) const { return second_[static_cast<std::size_t>(j)]; }
  bool agree(Position i, Position j) const { return has(i, j) && may_be_same(first(i), second(j)); }
  double distance(Position i, Position j) const { return first(i).end - second(j).end; }
  // The call of the other list whose end is nearest, if clocks differ by so much.
  Position partner_in_second(Position i, double clock_distance) const {
    return nearest_end(second_, first(i).end - clock_distance);
  }
  Position partner_in_first(Position j, double clock_distance) const {
    return nearest_end(first_, second(j).end + clock_distance);
  }

 private:
  const RankCalls& first_;
  const RankCalls& second_;
};

struct Shift {
  Position by = 0;
  std::size_t agreeing = 0;
  // A pair at this shift, and the usual distance around it.
  Position first = 0;
  double usual_distance = 0.0;
  // How much the distances scatter, and a part of how long they are.
  double cost = std::numeric_limits<double>::infinity();
};

// Calls of the first list and how far their ends are from those of the second one.
using Distances = std::vector<std::pair<double, Position>>;

// Takes the narrowest and nearest cluster that holds the usual part of the distances, if it is
// better than what the shift has.
void consider_cluster(Distances distances, Shift& shift) {
  std::sort(distances.begin(), distances.end());
  const auto part = std::max<std::size_t>(
      1, static_cast<std::size_t>(kUsualPart * static_cast<double>(distances.size())));
  for (std::size_t i = 0; i + part <= distances.size(); ++i) {
    const auto& [middle, first] = distances[i + part / 2];
    const double cost =
        distances[i + part - 1].first - distances[i].first + kWeightOfClocks * std::abs(middle);
    if (cost >= shift.cost) continue;
    shift.cost = cost;
    shift.first = first;
    shift.usual_distance = middle;
  }
}

// Stretches of the first list that stand for all of it.
std::vector<std::pair<Position, Position>> stretches_of(Position size) {
  constexpr Position kMost = 8, kShortest = 4, kLongest = 32;
  const Position length = std::clamp(size / kMost, std::min(kShortest, size), kLongest);
  const Position count = std::min(kMost, (size + length - 1) / length);
  std::vector<std::pair<Position, Position>> stretches;
  for (Position i = 0; i < count; ++i) {
    const Position begin = count > 1 ? i * (size - length) / (count - 1) : 0;
    stretches.emplace_back(begin, begin + length);
  }
  return stretches;
}

// What the stretches that agree throughout with the second list at this shift tell. None if fewer
// than half of the calls in the shorter list would have a partner.
std::optional<Shift> shift_by(Position by, const TwoLists& lists,
                              const std::vector<std::pair<Position, Position>>& stretches) {
  const Position shorter = std::min(lists.first_size(), lists.second_size());
  const Position common =
      std::min(lists.first_size(), lists.second_size() - by) - std::max<Position>(0, -by);
  if (2 * common < shorter) return std::nullopt;
  Shift shift{.by = by};
  for (const auto& [begin, end] : stretches) {
    Distances distances;
    bool agrees = true;
    for (Position i = begin; i < end && agrees; ++i) {
      if (!lists.has(i, i + by)) continue;
      agrees = lists.agree(i, i + by);
      distances.emplace_back(lists.distance(i, i + by), i);
    }
    if (!agrees || distances.empty()) continue;
    shift.agreeing += distances.size();
    consider_cluster(std::move(distances), shift);
  }
  return shift.agreeing > 0 ? std::optional(shift) : std::nullopt;
}

// How far the ends of calls all over the first list usually are from the nearest ones of the second
// list that may be the same: gaps do not matter to it.
double deviation_on_whole_lists(const TwoLists& lists, double clock_distance) {
  constexpr Position kSample = 256;
  constexpr double kNone = 1e15, kPart = 0.4;
  std::vector<double> deviations;
  const Position step = std::max<Position>(1, lists.first_size() / kSample);
  for (Position i = 0; i < lists.first_size(); i += step) {
    const Position j = lists.partner_in_second(i, clock_distance);
    deviations.push_back(lists.agree(i, j) ? std::abs(lists.distance(i, j) - clock_distance)
                                           : kNone);
  }
  const auto usual =
      deviations.begin() + static_cast<Position>(kPart * static_cast<double>(deviations.size()));
  std::nth_element(deviations.begin(), usual, deviations.end());
  return *usual;
}

// True if each call of the one list may be that at the same place of the other: ranks that recorded
// the same steps, whatever their clocks say.
bool agree_throughout(const TwoLists& lists) {
  if (lists.first_size() != lists.second_size()) return false;
  for (Position i = 0; i < lists.first_size(); ++i)
    if (!lists.agree(i, i)) return false;
  return true;
}

std::optional<Shift> best_shift(const TwoLists& lists, const std::stop_token& stop) {
  const Position furthest =
      std::min(kFurthestShift, std::max(lists.first_size(), lists.second_size()));
  const auto stretches = stretches_of(lists.first_size());
  std::vector<Shift> shifts;
  std::size_t most = 0;
  for (Position by = -furthest; by <= furthest; ++by) {
    throw_if_stopped(stop);
    const std::optional<Shift> shift = shift_by(by, lists, stretches);
    if (!shift) continue;
    most = std::max(most, shift->agreeing);
    shifts.push_back(*shift);
  }
  std::erase_if(shifts, [&](const Shift& shift) {
    return static_cast<double>(shift.agreeing) < kAgreement * static_cast<double>(most);
  });
  std::stable_sort(shifts.begin(), shifts.end(),
                   [](const Shift& a, const Shift& b) { return a.cost < b.cost; });
  // That at which all calls agree is tried in any case.
  const auto is_complete = [agrees = agree_throughout(lists)](const Shift& shift) {
    return agrees && shift.by == 0;
  };
  std::stable_partition(shifts.begin(), shifts.end(), is_complete);
  if (shifts.size() > kMostTried) shifts.resize(kMostTried);
  double steadiest = std::numeric_limits<double>::infinity();
  for (Shift& shift : shifts) {
    shift.cost = deviation_on_whole_lists(lists, shift.usual_distance);
    steadiest = std::min(steadiest, shift.cost);
  }
  std::erase_if(shifts, [&](const Shift& shift) { return shift.cost > kAsSteady * steadiest; });
  // Of equally steady ones, as those of regular calls are, the nearest.
  if (!shifts.empty() && is_complete(shifts.front())) return shifts.front();
  const auto nearest = std::ranges::min_element(
      shifts, {}, [](const Shift& shift) { return std::abs(shift.usual_distance); });
  return nearest == shifts.end() ? std::nullopt : std::optional(*nearest);
}

// Walks along two lists from a pair of calls that are the same, to their ends or to their
// beginnings.
class Walk {
 public:
  Walk(const TwoLists& lists, double usual_distance, Position direction,
       const std::stop_token& stop)
      : lists_(lists), usual_(usual_distance), direction_(direction), stop_(stop) {}

  // Adds the pairs from these positions on.
  void add_pairs(Position i, Position j, std::vector<std::pair<std::size_t, std::size_t>>& pairs) {
    while (lists_.has(i, j)) {
      throw_if_stopped(stop_);
      bool is_sure = lists_.agree(i, j) && !is_suspect(i, j);
      if (!is_sure) {
        if (const auto next = behind_gap(i, j)) {
          std::tie(i, j) = *next;
          is_sure = true;
        } else if (!lists_.agree(i, j)) {
          // The one that ends first has no partner.
          const bool first_is_earlier = lists_.distance(i, j) < usual_;
          (first_is_earlier == (direction_ > 0) ? i : j) += direction_;
          continue;
        }
      }
      pairs.emplace_back(i, j);
      // Clocks drift.
      constexpr double kDrift = 0.125;
      if (is_sure) usual_ += kDrift * (lists_.distance(i, j) - usual_);
      i += direction_;
      j += direction_;
    }
  }

 private:
  double deviation(Position i, Position j) const {
    return std::abs(lists_.distance(i, j) - usual_);
  }

  // True if the next call of either list would end nearer.
  bool is_suspect(Position i, Position j) const {
    const double own = deviation(i, j);
    const auto is_nearer = [&](Position other_i, Position other_j) {
      return lists_.agree(other_i, other_j) && deviation(other_i, other_j) < own;
    };
    return is_nearer(i + direction_, j) || is_nearer(i, j + direction_);
  }

  // The median deviation of the next calls, of which another gap may follow soon; none if they do
  // not agree.
  std::optional<double> deviation_from(Position i, Position j) const {
    if (!lists_.agree(i, j)) return std::nullopt;
    constexpr double kNever = std::numeric_limits<double>::infinity();
    std::array<double, 3> deviations{};
    std::size_t count = 0;
    for (; count < deviations.size() && lists_.has(i, j); i += direction_, j += direction_)
      deviations[count++] = lists_.agree(i, j) ? deviation(i, j) : kNever;
    const auto end = deviations.begin() + static_cast<Position>(count);
    std::sort(deviations.begin(), end);
    const double median = deviations[count / 2];
    return median < kNever ? std::optional(median) : std::nullopt;
  }

  // The pair at which both lists go on together, if that explains the times clearly better than no
  // gap. Of equally good ones that with the fewest calls left out.
  std::optional<std::pair<Position, Position>> behind_gap(Position i, Position j) const {
    const std::optional<double> without_gap = deviation_from(i, j);
    std::optional<std::pair<Position, Position>> best;
    double least =
        without_gap ? *without_gap / kClearlyBetter : std::numeric_limits<double>::infinity();
    const auto consider = [&](Position other_i, Position other_j) {
      // The walk from the best pair comes by here.
      if (best && other_i - other_j == best->first - best->second) return;
      const std::optional<double> found = deviation_from(other_i, other_j);
      if (!found || *found >= (best ? least / kClearlyBetter : least)) return;
      best = {other_i, other_j};
      least = *found;
    };
    for (Position gap = 1; gap <= kLongestGap; ++gap) {
      consider(i + direction_ * gap, j);
      consider(i, j + direction_ * gap);
      for (Position part = 1; part < gap && gap <= 2 * kLongestDoubleGap; ++part)
        consider(i + direction_ * part, j + direction_ * (gap - part));
    }
    // Longer gaps are found by the time.
    if (const Position far = lists_.partner_in_second(i, usual_);
        direction_ * (far - j) > kLongestGap)
      consider(i, far);
    if (const Position far = lists_.partner_in_first(j, usual_);
        direction_ * (far - i) > kLongestGap)
      consider(far, j);
    return best;
  }

  const TwoLists& lists_;
  double usual_;
  Position direction_;
  const std::stop_token& stop_;
};

CallAlignment align_from(const TwoLists& lists, Position i, Position j, double clock_distance,
                         const std::stop_token& stop) {
  CallAlignment alignment;
  alignment.clock_distance = clock_distance;
  Walk(lists, clock_distance, -1, stop).add_pairs(i - 1, j - 1, alignment.pairs);
  std::reverse(alignment.pairs.begin(), alignment.pairs.end());
  Walk(lists, clock_distance, 1, stop).add_pairs(i, j, alignment.pairs);
  return alignment;
}

CallAlignment align_by_order(const RankCalls& first, const RankCalls& second,
                             const std::stop_token& stop) {
  const TwoLists lists(first, second);
  const std::optional<Shift> shift = best_shift(lists, stop);
  if (!shift) return {};
  return align_from(lists, shift->first, shift->first + shift->by, shift->usual_distance, stop);
}

// Begins at the pair whose ends are nearest on equal clocks.
CallAlignment align_by_clock(const RankCalls& first, const RankCalls& second,
                             const std::stop_token& stop) {
  const TwoLists lists(first, second);
  std::optional<std::pair<Position, Position>> best;
  for (Position i = 0; i < lists.first_size(); ++i) {
    const Position j = lists.partner_in_second(i, 0.0);
    const auto is_nearer = [&] {
      return !best ||
             std::abs(lists.distance(i, j)) < std::abs(lists.distance(best->first, best->second));
    };
    if (lists.agree(i, j) && is_nearer()) best = {i, j};
  }
  if (!best) return {};
  return align_from(lists, best->first, best->second, 0.0, stop);
}

// Numbers and positions of the calls that have a number, by number and kind.
std::vector<std::pair<std::int64_t, std::size_t>> numbered(const RankCalls& calls) {
  std::vector<std::pair<std::int64_t, std::size_t>> numbers;
  for (std::size_t i = 0; i < calls.size(); ++i)
    if (calls[i].arguments->sequence) numbers.emplace_back(*calls[i].arguments->sequence, i);
  std::stable_sort(numbers.begin(), numbers.end(), [&](const auto& a, const auto& b) {
    return std::tie(a.first, calls[a.second].kind) < std::tie(b.first, calls[b.second].kind);
  });
  return numbers;
}

// Of calls that were launched before a recording began, the trace tells neither number nor step:
// they continue what those of others tell.
void add_calls_without_number(const TwoLists& lists, CallAlignment& alignment) {
  if (alignment.pairs.empty()) return;
  std::vector<bool> first_taken(static_cast<std::size_t>(lists.first_size())),
      second_taken(static_cast<std::size_t>(lists.second_size()));
  for (const auto& [i, j] : alignment.pairs) first_taken[i] = second_taken[j] = true;
  std::vector<std::pair<std::size_t, std::size_t>> more;
  const auto follow = [&](Position i, Position j, Position direction) {
    for (i += direction, j += direction; lists.agree(i, j); i += direction, j += direction) {
      const auto first = static_cast<std::size_t>(i), second = static_cast<std::size_t>(j);
      if (first_taken[first] || second_taken[second]) return;
      if (lists.first(i).arguments->sequence && lists.second(j).arguments->sequence) return;
      first_taken[first] = second_taken[second] = true;
      more.emplace_back(first, second);
    }
  };
  follow(static_cast<Position>(alignment.pairs.front().first),
         static_cast<Position>(alignment.pairs.front().second), -1);
  std::reverse(more.begin(), more.end());
  for (const auto& [i, j] : alignment.pairs) {
    more.emplace_back(i, j);
    follow(static_cast<Position>(i), static_cast<Position>(j), 1);
  }
  alignment.pairs = std::move(more);
}

// The median distance of the ends of pairs; 0 without pairs.
double usual_distance(const RankCalls& first, const RankCalls& second,
                      const std::vector<std::pair<std::size_t, std::size_t>>& pairs) {
  if (pairs.empty()) return 0.0;
  std::vector<double> distances;
  for (const auto& [i, j] : pairs) distances.push_back(first[i].end - second[j].end);
  const auto middle = distances.begin() + static_cast<Position>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle;
}

std::map<std::int64_t, std::vector<std::size_t>> positions_by_step(const RankCalls& calls) {
  std::map<std::int64_t, std::vector<std::size_t>> positions;
  for (std::size_t i = 0; i < calls.size(); ++i)
    if (calls[i].step) positions[*calls[i].step].push_back(i);
  return positions;
}

// Some of a list's calls, with ends on a clock that is ahead by so much.
RankCalls calls_at(const RankCalls& calls, const std::vector<std::size_t>& positions,
                   double ahead = 0.0) {
  RankCalls some;
  for (const std::size_t position : positions) {
    some.push_back(calls[position]);
    some.back().end += ahead;
  }
  return some;
}

// Steps in which a rank's recording lacks calls are aligned by the clocks, whose distance the
// others tell. None unless most of the common steps have the same calls in both lists.
std::optional<CallAlignment> align_by_step(const RankCalls& first, const RankCalls& second,
                                           const std::stop_token& stop) {
  CallAlignment alignment;
  const auto theirs = positions_by_step(second);
  std::vector<std::pair<std::vector<std::size_t>, std::vector<std::size_t>>> unequal;
  std::size_t equal = 0;
  for (const auto& [step, ours] : positions_by_step(first)) {
    const auto found = theirs.find(step);
    if (found == theirs.end()) continue;
    if (!std::ranges::equal(ours, found->second, [&](std::size_t i, std::size_t j) {
          return may_be_same(first[i], second[j]);
        })) {
      unequal.emplace_back(ours, found->second);
      continue;
    }
    ++equal;
    for (std::size_t i = 0; i < ours.size(); ++i)
      alignment.pairs.emplace_back(ours[i], found->second[i]);
  }
  if (equal == 0 || equal < unequal.size()) return std::nullopt;
  alignment.clock_distance = usual_distance(first, second, alignment.pairs);
  for (const auto& [ours, others] : unequal) {
    const CallAlignment step = align_by_clock(
        calls_at(first, ours), calls_at(second, others, alignment.clock_distance), stop);
    for (const auto& [i, j] : step.pairs) alignment.pairs.emplace_back(ours[i], others[j]);
  }
  std::sort(alignment.pairs.begin(), alignment.pairs.end());
  add_calls_without_number(TwoLists(first, second), alignment);
  return alignment;
}

CallAlignment align_by_number(const RankCalls& first, const RankCalls& second,
                              const std::stop_token& stop) {
  CallAlignment alignment;
  const auto ours = numbered(first), theirs = numbered(second);
  const auto key = [](const RankCalls& calls, const auto& entry) {
    return std::tie(entry.first, calls[entry.second].kind);
  };
  for (std::size_t i = 0, j = 0; i < ours.size() && j < theirs.size();) {
    throw_if_stopped(stop);
    const auto mine = key(first, ours[i]), other = key(second, theirs[j]);
    if (mine == other && may_be_same(first[ours[i].second], second[theirs[j].second]))
      alignment.pairs.emplace_back(ours[i].second, theirs[j].second);
    const bool both = mine == other;
    if (both || mine < other) ++i;
    if (both || other < mine) ++j;
  }
  std::sort(alignment.pairs.begin(), alignment.pairs.end());
  alignment.clock_distance = usual_distance(first, second, alignment.pairs);
  if (ours.size() < first.size() || theirs.size() < second.size())
    add_calls_without_number(TwoLists(first, second), alignment);
  return alignment;
}

bool has_numbers(const RankCalls& calls) {
  return std::any_of(calls.begin(), calls.end(),
                     [](const RankCall& call) { return call.arguments->sequence.has_value(); });
}

}  // namespace

CallAlignment align_calls(const RankCalls& first, const RankCalls& second,
                          const std::stop_token& stop) {
  if (first.empty() || second.empty()) return {};
  if (has_numbers(first) && has_numbers(second)) return align_by_number(first, second, stop);
  if (auto by_step = align_by_step(first, second, stop)) return *std::move(by_step);
  return align_by_order(first, second, stop);
}

}  // namespace shardwright::calibration
