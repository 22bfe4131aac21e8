#include "calibration/traces/rank_matching.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "calibration/traces/trace_report.hpp"
#include "core/base/printable_text.hpp"

namespace shardwright::calibration {
namespace {

// Recordings of one run that start further apart are not matched.
constexpr std::ptrdiff_t kFurthestShift = 512;

struct Call {
  std::string kind;
  const CollectiveCall* arguments = nullptr;
  // Nanoseconds since 1970, if the trace tells them.
  double end = 0.0;
  std::int64_t duration = 0;
};

using Calls = std::vector<Call>;

// The collectives of a device by group.
struct Participant {
  const Trace* trace = nullptr;
  std::int32_t device = 0;
  std::map<std::string, Calls> groups;
  std::int64_t calls = 0;
};

// What several ranks did together, by their positions among the participants.
struct JointCall {
  const Call* call = nullptr;
  std::map<std::size_t, std::int64_t> durations;
};

std::string group_key(const CollectiveCall& call) {
  return call.group + " " + call.members;
}

bool is_matched_kind(const std::string& kind) {
  return kind != "send" && kind != "receive";
}

// Calls whose group is not known count as of the only group there is, if there is only one.
void assign_group_of_unknown(std::map<std::string, Calls>& groups) {
  static const std::string kUnknown = group_key({});
  const auto unknown = groups.find(kUnknown);
  if (unknown == groups.end() || groups.size() == 1) return;
  if (groups.size() == 2) {
    Calls& known = groups.begin() == unknown ? std::next(unknown)->second : groups.begin()->second;
    known.insert(known.end(), unknown->second.begin(), unknown->second.end());
    std::stable_sort(known.begin(), known.end(),
                     [](const Call& a, const Call& b) { return a.end < b.end; });
  }
  groups.erase(unknown);
}

std::vector<Participant> participants_of(const std::vector<Trace>& traces) {
  static const CollectiveCall kNoArguments;
  std::vector<Participant> participants;
  for (const Trace& trace : traces) {
    std::map<std::int32_t, Participant> devices;
    for (const DeviceActivity& each : trace.activities) {
      Participant& device = devices[each.device];
      device.trace = &trace;
      device.device = each.device;
      if (each.category != KernelCategory::Collective) continue;
      const std::string kind = kind_of_collective(trace, each);
      if (!is_matched_kind(kind)) continue;
      const CollectiveCall& arguments =
          each.collective == kNoIndex
              ? kNoArguments
              : trace.collectives[static_cast<std::size_t>(each.collective)];
      const double end =
          static_cast<double>(each.end()) + static_cast<double>(trace.clock_offset.value_or(0));
      device.groups[group_key(arguments)].push_back({kind, &arguments, end, each.duration});
      ++device.calls;
    }
    for (auto& [number, device] : devices) {
      assign_group_of_unknown(device.groups);
      participants.push_back(std::move(device));
    }
  }
  return participants;
}

bool are_of_one_run(const std::vector<Trace>& traces) {
  std::set<std::int64_t> ranks;
  for (const Trace& trace : traces) {
    if (traces.size() > 1 && (!trace.rank || !ranks.insert(*trace.rank).second)) return false;
    if (trace.world_size != traces.front().world_size) return false;
  }
  return true;
}

template <class T>
bool may_be_equal(const std::optional<T>& a, const std::optional<T>& b) {
  return !a || !b || *a == *b;
}

bool may_be_same(const Call& a, const Call& b) {
  return a.kind == b.kind && may_be_equal(a.arguments->bytes, b.arguments->bytes) &&
         may_be_equal(a.arguments->group_size, b.arguments->group_size) &&
         may_be_equal(a.arguments->sequence, b.arguments->sequence);
}

// The clocks of hosts may differ by milliseconds: a steady distance counts for more than a short
// one.
constexpr double kWeightOfClocks = 0.01;

double median_of_numbers(std::vector<double>& numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

// How far the ends of `a`'s calls are from those of `b` that come `shift` later in their list: the
// median deviation from their median distance, and a part of that. Returns nothing if calls differ, or
// if fewer than half of the calls in the shorter list have a partner.
std::optional<double> distance_at(const Calls& a, const Calls& b, std::ptrdiff_t shift) {
  std::vector<double> distances;
  const auto size = static_cast<std::ptrdiff_t>(a.size());
  for (std::ptrdiff_t i = std::max<std::ptrdiff_t>(0, -shift); i < size; ++i) {
    const std::ptrdiff_t other = i + shift;
    if (other >= static_cast<std::ptrdiff_t>(b.size())) break;
    const Call &mine = a[static_cast<std::size_t>(i)], &theirs = b[static_cast<std::size_t>(other)];
    if (!may_be_same(mine, theirs)) return std::nullopt;
    distances.push_back(mine.end - theirs.end);
  }
  if (2 * distances.size() < std::min(a.size(), b.size()) || distances.empty()) return std::nullopt;
  const double usual = median_of_numbers(distances);
  for (double& distance : distances) distance = std::abs(distance - usual);
  return median_of_numbers(distances) + kWeightOfClocks * std::abs(usual);
}

std::optional<std::ptrdiff_t> best_shift(const Calls& a, const Calls& b) {
  const std::ptrdiff_t furthest =
      std::min(kFurthestShift, static_cast<std::ptrdiff_t>(std::max(a.size(), b.size())));
  std::optional<std::ptrdiff_t> best;
  double nearest = 0.0;
  for (std::ptrdiff_t shift = -furthest; shift <= furthest; ++shift) {
    const std::optional<double> distance = distance_at(a, b, shift);
    if (!distance || (best && *distance >= nearest)) continue;
    best = shift;
    nearest = *distance;
  }
  return best;
}

// The calls of a group: those of the first participant that has it, and those of the others beside
// them.
std::vector<JointCall> join_calls(const std::vector<Participant>& participants,
                                  const std::string& group) {
  std::vector<JointCall> joint;
  const Calls* reference = nullptr;
  for (std::size_t p = 0; p < participants.size(); ++p) {
    const auto found = participants[p].groups.find(group);
    if (found == participants[p].groups.end()) continue;
    const Calls& calls = found->second;
    if (reference == nullptr) {
      reference = &calls;
      for (const Call& call : calls) joint.push_back({&call, {{p, call.duration}}});
      continue;
    }
    const std::optional<std::ptrdiff_t> shift = best_shift(*reference, calls);
    if (!shift) continue;
    for (std::size_t i = 0; i < reference->size(); ++i) {
      const std::ptrdiff_t other = static_cast<std::ptrdiff_t>(i) + *shift;
      if (other < 0 || other >= static_cast<std::ptrdiff_t>(calls.size())) continue;
      const Call& call = calls[static_cast<std::size_t>(other)];
      joint[i].durations.emplace(p, call.duration);
      // Another rank may know the size of a call that was launched before this recording began.
      if (!joint[i].call->arguments->bytes) joint[i].call = &call;
    }
  }
  std::erase_if(joint, [](const JointCall& each) { return each.durations.size() < 2; });
  return joint;
}

class Summary {
 public:
  explicit Summary(const std::vector<Participant>& participants) {
    for (const Participant& each : participants) {
      matching_.ranks.push_back({each.trace->file, each.trace->rank, each.device});
      matching_.unmatched += each.calls;
    }
  }

  void add(const JointCall& joint) {
    const auto [first, last] =
        std::minmax_element(joint.durations.begin(), joint.durations.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; });
    const std::int64_t shortest = first->second;
    const CollectiveCall& call = *joint.call->arguments;
    Sum& sum = sums_[{joint.call->kind, call.bytes, call.group_size, name_of_group(call),
                      shape_of_group(call.members, call.group_size.value_or(0))}];
    sum.transfers.push_back(from_ns(shortest));
    sum.skews.push_back(from_ns(last->second - shortest));
    sum.ranks = std::max(sum.ranks, joint.durations.size());
    ++matching_.ranks[first->first].last_arrivals;
    for (const auto& [participant, duration] : joint.durations)
      matching_.ranks[participant].waited += from_ns(duration - shortest);
    matching_.matched += static_cast<std::int64_t>(joint.durations.size());
    matching_.unmatched -= static_cast<std::int64_t>(joint.durations.size());
  }

  RankMatching take() {
    for (const auto& [key, sum] : sums_) {
      MatchedCollectives each;
      std::tie(each.kind, each.bytes, each.group_size, each.group, each.shape) = key;
      each.ranks = static_cast<std::int64_t>(sum.ranks);
      each.count = static_cast<std::int64_t>(sum.transfers.size());
      each.transfer = median_of(sum.transfers);
      each.skew = median_of(sum.skews);
      each.longest_skew = *std::max_element(sum.skews.begin(), sum.skews.end());
      if (each.bytes && each.group_size && each.transfer > Seconds(0.0))
        each.bus_bandwidth = Bytes(static_cast<double>(*each.bytes)) *
                             bus_factor(each.kind, static_cast<double>(*each.group_size)) /
                             each.transfer;
      matching_.collectives.push_back(std::move(each));
    }
    const auto total = [](const MatchedCollectives& each) {
      return each.transfer * static_cast<double>(each.count);
    };
    std::stable_sort(matching_.collectives.begin(), matching_.collectives.end(),
                     [&](const auto& a, const auto& b) { return total(a) > total(b); });
    return std::move(matching_);
  }

 private:
  using Key = std::tuple<std::string, std::optional<std::int64_t>, std::optional<std::int64_t>,
                         std::string, GroupShape>;
  struct Sum {
    std::vector<Seconds> transfers, skews;
    std::size_t ranks = 0;
  };

  static std::string name_of_group(const CollectiveCall& call) {
    return call.description.empty() ? call.group : call.description;
  }

  RankMatching matching_;
  std::map<Key, Sum> sums_;
};

template <class T>
nlohmann::ordered_json value_or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

std::optional<RankMatching> match_ranks(const std::vector<Trace>& traces) {
  if (traces.empty() || !are_of_one_run(traces)) return std::nullopt;
  const std::vector<Participant> participants = participants_of(traces);
  if (participants.size() < 2) return std::nullopt;
  std::set<std::string> groups;
  for (const Participant& each : participants)
    for (const auto& [group, calls] : each.groups) groups.insert(group);
  Summary summary(participants);
  for (const std::string& group : groups)
    for (const JointCall& joint : join_calls(participants, group)) summary.add(joint);
  return summary.take();
}

nlohmann::ordered_json to_json(const RankMatching& matching) {
  auto collectives = nlohmann::ordered_json::array();
  for (const MatchedCollectives& each : matching.collectives) {
    auto shape = nlohmann::ordered_json::array();
    for (const auto& [count, stride] : each.shape)
      shape.push_back({{"count", count}, {"stride", stride}});
    collectives.push_back(
        {{"kind", each.kind},
         {"bytes", value_or_null(each.bytes)},
         {"group_size", value_or_null(each.group_size)},
         {"group", each.group.empty() ? nlohmann::ordered_json()
                                      : nlohmann::ordered_json(printable(each.group))},
         {"shape", std::move(shape)},
         {"ranks", each.ranks},
         {"count", each.count},
         {"median_transfer_s", each.transfer.value()},
         {"median_skew_s", each.skew.value()},
         {"longest_skew_s", each.longest_skew.value()},
         {"bus_bandwidth_bytes_per_s",
          each.bus_bandwidth ? nlohmann::ordered_json(each.bus_bandwidth->value()) : nullptr}});
  }
  auto ranks = nlohmann::ordered_json::array();
  for (const RankWaits& each : matching.ranks)
    ranks.push_back({{"path", printable(each.file)},
                     {"rank", value_or_null(each.rank)},
                     {"device", each.device},
                     {"waited_s", each.waited.value()},
                     {"last_arrivals", each.last_arrivals}});
  return {{"matched", matching.matched},
          {"unmatched", matching.unmatched},
          {"collectives", std::move(collectives)},
          {"ranks", std::move(ranks)}};
}

}  // namespace shardwright::calibration
