#include "calibration/inspector_matching.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "calibration/traces/kernel_category.hpp"
#include "calibration/traces/trace_report.hpp"

namespace shardwright::calibration {
namespace {

// A collective of a process. Communicators are numbered over all processes.
struct NumberedCall {
  std::size_t communicator = 0;
  OpKind kind = OpKind::AllReduce;
  std::int64_t sequence = 0;
  double bytes = 0.0;
  std::size_t process = 0;
  Seconds time;

  auto which() const { return std::tuple(communicator, kind, sequence, bytes); }
};

struct Communicator {
  std::int64_t ranks = 0, nodes = 1;
  // Processes that have it.
  std::int64_t traced = 0;
};

using Calls = std::vector<NumberedCall>;
using CallIterator = Calls::const_iterator;

class ProcessMatching {
 public:
  explicit ProcessMatching(const std::vector<InspectorProcess>& processes) {
    for (std::size_t p = 0; p < processes.size(); ++p) add(p, processes[p]);
    std::stable_sort(calls_.begin(), calls_.end(),
                     [](const NumberedCall& a, const NumberedCall& b) {
                       return std::tuple(a.which(), a.process) < std::tuple(b.which(), b.process);
                     });
  }

  std::optional<RankMatching> take() {
    if (std::ranges::none_of(communicators_, [](const auto& each) { return each.traced > 1; }))
      return std::nullopt;
    for (auto first = calls_.cbegin(); first != calls_.cend();) {
      const auto last = std::find_if(first, calls_.cend(), [&](const NumberedCall& each) {
        return each.which() != first->which();
      });
      add_joint(first, last);
      first = last;
    }
    for (auto& [key, sum] : sums_) matching_.collectives.push_back(summary_of(key, sum));
    std::stable_sort(matching_.collectives.begin(), matching_.collectives.end(),
                     [](const MatchedCollectives& a, const MatchedCollectives& b) {
                       return a.transfer * static_cast<double>(a.count) >
                              b.transfer * static_cast<double>(b.count);
                     });
    return std::move(matching_);
  }

 private:
  // Kind, ranks, nodes and bytes.
  using Key = std::tuple<OpKind, std::int64_t, std::int64_t, double>;
  struct Sum {
    std::vector<Seconds> transfers, skews;
    std::int64_t ranks = 0;
  };

  void add(std::size_t number, const InspectorProcess& process) {
    const auto rank = process.world().rank;
    matching_.ranks.push_back(
        {.file = process.file, .rank = rank, .device = static_cast<std::int32_t>(rank)});
    std::vector<std::size_t> own;
    for (const InspectorCommunicator& each : process.communicators) {
      const auto [known, is_new] =
          numbers_.try_emplace({each.id, each.ranks}, communicators_.size());
      if (is_new) communicators_.push_back({each.ranks, each.nodes});
      ++communicators_[known->second].traced;
      own.push_back(known->second);
    }
    for (const InspectorCall& call : process.calls) {
      if (is_message(call)) continue;
      ++matching_.unmatched;
      ++matching_.ranks.back().unmatched;
      const std::size_t communicator = own[static_cast<std::size_t>(call.communicator)];
      // Times of the host are none of the transfer.
      if (call.sequence >= 0 && call.by_device)
        calls_.push_back(
            {communicator, call.kind, call.sequence, call.bytes.value(), number, call.time});
    }
  }

  void add_joint(CallIterator first, CallIterator last) {
    const Communicator& communicator = communicators_[first->communicator];
    if (communicator.traced < 2) matching_.alone += last - first;
    // A number that a process has twice stands for its first call.
    std::vector<const NumberedCall*> members;
    for (; first != last; ++first)
      if (members.empty() || members.back()->process != first->process) members.push_back(&*first);
    if (members.size() < 2) return;
    const auto [shortest, longest] = std::ranges::minmax_element(
        members, {}, [](const NumberedCall* each) { return each->time.value(); });
    const Seconds transfer = (*shortest)->time;
    Sum& sum = sums_[{members.front()->kind, communicator.ranks, communicator.nodes,
                      members.front()->bytes}];
    sum.transfers.push_back(transfer);
    sum.skews.push_back((*longest)->time - transfer);
    sum.ranks = std::max(sum.ranks, static_cast<std::int64_t>(members.size()));
    std::vector<std::pair<std::size_t, Seconds>> durations;
    for (const NumberedCall* each : members) durations.emplace_back(each->process, each->time);
    add_waits(matching_, durations);
  }

  static MatchedCollectives summary_of(const Key& key, const Sum& sum) {
    const auto& [kind, ranks, nodes, bytes] = key;
    MatchedCollectives each;
    each.kind = shardwright::name_of(kind);
    each.bytes = static_cast<std::int64_t>(bytes);
    each.group_size = ranks;
    each.group = nodes == 1 ? "of a node" : fmt::format("over {} nodes", nodes);
    each.ranks = sum.ranks;
    each.count = static_cast<std::int64_t>(sum.transfers.size());
    each.transfer = median_of(sum.transfers);
    each.skew = median_of(sum.skews);
    each.longest_skew = *std::ranges::max_element(sum.skews);
    each.bus_bandwidth =
        Bytes(bytes) * bus_factor(each.kind, static_cast<double>(ranks)) / each.transfer;
    return each;
  }

  std::map<std::pair<std::string, std::int64_t>, std::size_t> numbers_;
  std::vector<Communicator> communicators_;
  Calls calls_;
  std::map<Key, Sum> sums_;
  RankMatching matching_;
};

}  // namespace

std::optional<RankMatching> match_processes(const std::vector<InspectorProcess>& processes) {
  return ProcessMatching(processes).take();
}

}  // namespace shardwright::calibration
