#include "calibration/traces/rank_matching.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "calibration/traces/call_alignment.hpp"
#include "calibration/traces/trace_report.hpp"
#include "core/base/error.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/quantity_text.hpp"

namespace shardwright::calibration {
namespace {

// The collectives of a device by group.
struct Participant {
  const Trace* trace = nullptr;
  std::int32_t device = 0;
  std::map<std::string, RankCalls> groups;
  std::int64_t calls = 0;
};

// What several ranks did together: by their positions among the participants what each took.
struct JointCall {
  std::string kind;
  const CollectiveCall* arguments = nullptr;
  std::vector<std::pair<std::size_t, std::int64_t>> durations;
};

std::string group_key(const CollectiveCall& call) {
  return call.group + " " + call.members;
}

bool is_matched_kind(const std::string& kind) {
  return kind != "send" && kind != "receive";
}

// Calls whose group is not known count as of the only group there is, if there is only one.
void assign_group_of_unknown(std::map<std::string, RankCalls>& groups) {
  static const std::string kUnknown = group_key({});
  const auto unknown = groups.find(kUnknown);
  if (unknown == groups.end() || groups.size() == 1) return;
  if (groups.size() == 2) {
    RankCalls& known =
        groups.begin() == unknown ? std::next(unknown)->second : groups.begin()->second;
    known.insert(known.end(), unknown->second.begin(), unknown->second.end());
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
      RankCall call{kind, &arguments, end, each.duration};
      if (each.launched && each.step != kNoIndex)
        call.step = trace.steps[static_cast<std::size_t>(each.step)].number;
      device.groups[group_key(arguments)].push_back(call);
      ++device.calls;
    }
    for (auto& [number, device] : devices) {
      assign_group_of_unknown(device.groups);
      for (auto& [group, calls] : device.groups)
        std::stable_sort(calls.begin(), calls.end(),
                         [](const RankCall& a, const RankCall& b) { return a.end < b.end; });
      participants.push_back(std::move(device));
    }
  }
  return participants;
}

// The nanoseconds since 1970 between which a trace was recorded; none if it does not tell.
std::optional<std::pair<double, double>> recorded_between(const Trace& trace) {
  if (!trace.clock_offset) return std::nullopt;
  const auto offset = static_cast<double>(*trace.clock_offset);
  return std::pair(offset + static_cast<double>(trace.begin),
                   offset + static_cast<double>(trace.end));
}

// The nanoseconds that lie between two recordings; 0 if they overlap or their times are not known.
double time_between(const Trace& a, const Trace& b) {
  const auto first = recorded_between(a), second = recorded_between(b);
  if (!first || !second) return 0.0;
  return std::max({0.0, first->first - second->second, second->first - first->second});
}

// The calls of a group on all participants so far, on the clock of the first one.
class JointCalls {
 public:
  void add(std::size_t participant, const RankCalls& calls, const std::stop_token& stop) {
    const CallAlignment alignment =
        reference_.empty() ? CallAlignment{} : align_calls(reference_, calls, stop);
    // Without a partner there is no telling where calls belong.
    if (!reference_.empty() && alignment.pairs.empty()) return;
    std::vector<bool> has_partner(calls.size());
    // Where the calls without a partner belong: behind how many of the known ones.
    std::vector<std::size_t> place(calls.size());
    for (const auto& [i, j] : alignment.pairs) {
      const RankCall& call = calls[j];
      joint_[i].durations.emplace_back(participant, call.duration);
      // Another rank may know the size of a call that was launched before this recording began.
      if (!reference_[i].arguments->bytes)
        joint_[i].arguments = reference_[i].arguments = call.arguments;
      has_partner[j] = true;
      place[j] = i + 1;
    }
    insert(participant, calls, has_partner, place, alignment.clock_distance);
  }

  // Those that at least two participants have.
  std::vector<JointCall> take() {
    std::erase_if(joint_, [](const JointCall& each) { return each.durations.size() < 2; });
    return std::move(joint_);
  }

 private:
  void insert(std::size_t participant, const RankCalls& calls, const std::vector<bool>& has_partner,
              const std::vector<std::size_t>& place, double clock_distance) {
    RankCalls reference;
    std::vector<JointCall> joint;
    std::size_t known = 0;
    const auto keep_known = [&](std::size_t end) {
      for (; known < end; ++known) {
        reference.push_back(std::move(reference_[known]));
        joint.push_back(std::move(joint_[known]));
      }
    };
    for (std::size_t j = 0, next = 0; j < calls.size(); ++j) {
      if (has_partner[j]) {
        keep_known(place[j]);
        continue;
      }
      RankCall call = calls[j];
      call.end += clock_distance;
      // Among the known ones up to the next pair, which this participant lacks, the earlier end
      // comes first.
      while (next < j || (next < calls.size() && !has_partner[next])) ++next;
      const std::size_t limit = next < calls.size() ? place[next] - 1 : reference_.size();
      while (known < limit && reference_[known].end <= call.end) keep_known(known + 1);
      if (!reference.empty()) call.end = std::max(call.end, reference.back().end);
      if (known < reference_.size()) call.end = std::min(call.end, reference_[known].end);
      joint.push_back({call.kind, call.arguments, {{participant, call.duration}}});
      reference.push_back(std::move(call));
    }
    keep_known(reference_.size());
    reference_ = std::move(reference);
    joint_ = std::move(joint);
  }

  // Both have the same calls in the same order.
  RankCalls reference_;
  std::vector<JointCall> joint_;
};

class Summary {
 public:
  explicit Summary(const std::vector<Participant>& participants) {
    for (const Participant& each : participants) {
      matching_.ranks.push_back({.file = each.trace->file,
                                 .rank = each.trace->rank,
                                 .device = each.device,
                                 .unmatched = each.calls});
      matching_.unmatched += each.calls;
    }
  }

  void add(const JointCall& joint) {
    const auto [first, last] =
        std::minmax_element(joint.durations.begin(), joint.durations.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; });
    const std::int64_t shortest = first->second;
    const CollectiveCall& call = *joint.arguments;
    const Key key = {joint.kind, call.bytes, call.group_size, name_of_group(call),
                     shape_of_group(call.members, call.group_size.value_or(0))};
    Sum& sum = sums_[key];
    sum.transfers.push_back(from_ns(shortest));
    sum.skews.push_back(from_ns(last->second - shortest));
    sum.ranks = std::max(sum.ranks, joint.durations.size());
    sum.is_irregular = !call.members.empty() && std::get<GroupShape>(key).empty();
    std::vector<std::pair<std::size_t, Seconds>> durations;
    for (const auto& [participant, duration] : joint.durations)
      durations.emplace_back(participant, from_ns(duration));
    add_waits(matching_, durations);
  }

  // Calls of groups that one participant alone is in.
  void add_alone(std::int64_t calls) { matching_.alone += calls; }

  RankMatching take() {
    for (const auto& [key, sum] : sums_) {
      MatchedCollectives each;
      std::tie(each.kind, each.bytes, each.group_size, each.group, each.shape) = key;
      each.is_irregular = sum.is_irregular;
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
    bool is_irregular = false;
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

void add_waits(RankMatching& matching,
               const std::vector<std::pair<std::size_t, Seconds>>& durations) {
  SHARDWRIGHT_CHECK(durations.size() > 1, "a shared collective has several ranks");
  Seconds shortest = durations.front().second, sum;
  for (const auto& [rank, duration] : durations) {
    shortest = std::min(shortest, duration);
    sum += duration;
  }
  const auto ranks = static_cast<double>(durations.size());
  const auto last = static_cast<double>(
      std::ranges::count(durations, shortest, &std::pair<std::size_t, Seconds>::second));
  for (const auto& [place, duration] : durations) {
    RankWaits& rank = matching.ranks[place];
    rank.waited += duration - shortest;
    if (duration == shortest) rank.caused += (sum - shortest * ranks) / (ranks - 1.0) / last;
    if (duration == shortest && last == 1.0) ++rank.last_arrivals;
    ++rank.matched;
    --rank.unmatched;
  }
  matching.matched += static_cast<std::int64_t>(durations.size());
  matching.unmatched -= static_cast<std::int64_t>(durations.size());
}

std::string obstacle_to_matching(const std::vector<Trace>& traces) {
  // The clocks of hosts may differ.
  constexpr double kMostApart = 600e9;
  if (traces.size() < 2) return "";
  const Trace& first = traces.front();
  const auto name = [](const Trace& trace) { return printable(trace.file); };
  std::map<std::int64_t, const Trace*> ranks;
  for (const Trace& trace : traces) {
    if (!trace.rank) return fmt::format("{} does not state its rank", name(trace));
    if (const auto [known, is_new] = ranks.emplace(*trace.rank, &trace); !is_new)
      return fmt::format("{} and {} are both of rank {}", name(*known->second), name(trace),
                         *trace.rank);
    if (trace.world_size != first.world_size)
      return fmt::format("{} and {} are of runs with different numbers of ranks", name(first),
                         name(trace));
    if (const double apart = time_between(first, trace); apart > kMostApart)
      return fmt::format("{} and {} were recorded {} apart", name(first), name(trace),
                         format_time(Seconds(apart * 1e-9)));
  }
  return "";
}

std::optional<RankMatching> match_ranks(const std::vector<Trace>& traces,
                                        const MatchingWatch& watch) {
  if (traces.empty() || !obstacle_to_matching(traces).empty()) return std::nullopt;
  const std::vector<Participant> participants = participants_of(traces);
  if (participants.size() < 2) return std::nullopt;
  std::map<std::string, std::vector<std::size_t>> groups;
  double all = 0.0, done = 0.0;
  for (std::size_t p = 0; p < participants.size(); ++p) {
    all += static_cast<double>(participants[p].calls);
    for (const auto& [group, calls] : participants[p].groups) groups[group].push_back(p);
  }
  Summary summary(participants);
  for (const auto& [group, members] : groups) {
    JointCalls calls;
    for (const std::size_t p : members) {
      const RankCalls& own = participants[p].groups.at(group);
      if (members.size() == 1) summary.add_alone(static_cast<std::int64_t>(own.size()));
      if (members.size() > 1) calls.add(p, own, watch.stop);
      done += static_cast<double>(own.size());
      if (watch.advanced) watch.advanced(done / std::max(1.0, all));
    }
    for (const JointCall& joint : calls.take()) summary.add(joint);
  }
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
                     {"caused_wait_s", each.caused.value()},
                     {"last_arrivals", each.last_arrivals},
                     {"unmatched", each.unmatched}});
  return {{"matched", matching.matched},
          {"unmatched", matching.unmatched},
          {"of_untraced_groups", matching.alone},
          {"collectives", std::move(collectives)},
          {"ranks", std::move(ranks)}};
}

}  // namespace shardwright::calibration
