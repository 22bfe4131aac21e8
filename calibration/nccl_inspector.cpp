#include "calibration/nccl_inspector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <tuple>
#include <utility>

#include "calibration/error_statistics.hpp"
#include "calibration/traces/inflated_file.hpp"
#include "calibration/traces/kernel_category.hpp"
#include "core/base/error.hpp"

namespace shardwright::calibration {
namespace {

constexpr const char* kExpectedInspector =
    "output of NCCL's Inspector: lines with \"header\" and \"coll_perf\" or \"p2p_perf\"";
constexpr double kUsualTransfer = 0.25;

// The number at a key; none if it is no number, or below `least`.
std::optional<double> number_at(const nlohmann::json& object, const char* key, double least) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const double value = *found;
  return value >= least && value < 1e18 ? std::optional(value) : std::nullopt;
}

std::optional<double> positive_at(const nlohmann::json& object, const std::string& key) {
  const auto value = number_at(object, key.c_str(), 0.0);
  return value && *value > 0.0 ? value : std::nullopt;
}

std::string text_at(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<OpKind> kind_named(const std::string& name) {
  if (name == "Send") return OpKind::Send;
  if (name == "Recv") return OpKind::Receive;
  const std::string kind = collective_kind(name);
  for (const OpKind each : {OpKind::AllReduce, OpKind::AllGather, OpKind::ReduceScatter,
                            OpKind::AllToAll, OpKind::Broadcast})
    if (kind == shardwright::name_of(each)) return each;
  return std::nullopt;
}

// The size as nccl-tests counts it, of what a rank has of all others too. Inspector states the
// elements of one rank (github.com/NVIDIA/nccl, plugins/profiler/inspector/inspector_plugin.cc),
// and counts those of all for its own bandwidths (inspector.cc).
Bytes size_of(OpKind kind, double stated, std::int64_t ranks) {
  const bool of_one_rank =
      kind == OpKind::AllGather || kind == OpKind::ReduceScatter || kind == OpKind::AllToAll;
  return Bytes(of_one_rank ? stated * static_cast<double>(ranks) : stated);
}

class InspectorReader {
 public:
  explicit InspectorReader(std::string source) : source_(std::move(source)) {}

  void read(const std::string& line) {
    const auto object = nlohmann::json::parse(line, nullptr, false);
    if (!object.is_object()) {
      if (object.is_discarded() && is_inspector_output(line)) ++unreadable_lines_;
      return;
    }
    if (const auto metadata = object.find("metadata");
        metadata != object.end() && metadata->is_object())
      process_ = fmt::format("{}:{}", text_at(*metadata, "hostname"),
                             number_at(*metadata, "pid", 0.0).value_or(0.0));
    if (const auto header = object.find("header"); header != object.end() && header->is_object()) {
      header_.id = text_at(*header, "id");
      header_.rank = static_cast<std::int64_t>(number_at(*header, "rank", 0.0).value_or(0.0));
      header_.ranks = static_cast<std::int64_t>(positive_at(*header, "n_ranks").value_or(0.0));
      header_.nodes = static_cast<std::int64_t>(positive_at(*header, "nnodes").value_or(1.0));
    }
    for (const char* part : {"coll", "p2p"})
      if (const auto found = object.find(fmt::format("{}_perf", part));
          found != object.end() && found->is_object())
        add(*found, part);
  }

  std::vector<InspectorProcess> take() {
    if (processes_.empty())
      throw InputError(source_,
                       {{"", "no line that states a collective or message", kExpectedInspector}});
    processes_.front().unreadable_lines = unreadable_lines_;
    return std::move(processes_);
  }

 private:
  void add(const nlohmann::json& performance, const std::string& part) {
    const std::string name = text_at(performance, part.c_str());
    const std::optional<OpKind> kind = kind_named(name);
    const auto bytes = positive_at(performance, part + "_msg_size_bytes"),
               time = positive_at(performance, part + "_exec_time_us");
    if (!bytes || !time || header_.ranks < 2) return;
    if (!kind) {
      ++processes_[place_of_header().first].left_out[name];
      return;
    }
    const std::string source = text_at(performance, (part + "_timing_source").c_str());
    InspectorCall call;
    call.kind = *kind;
    call.by_device = source.empty() || source.find("gpu") != std::string::npos;
    call.sequence = static_cast<std::int64_t>(
        number_at(performance, (part + "_sn").c_str(), 0.0).value_or(-1.0));
    call.bytes = size_of(*kind, *bytes, header_.ranks);
    call.time = microseconds(*time);
    const auto [process, communicator] = place_of_header();
    call.communicator = communicator;
    processes_[process].calls.push_back(call);
  }

  // The process and its communicator that the header names. A process has one rank in a
  // communicator, so that another rank in the same file is another process, whatever its metadata
  // say.
  std::pair<std::size_t, std::int32_t> place_of_header() {
    const auto key = std::tuple(process_, header_.id, header_.rank, header_.ranks);
    const auto [place, is_new] = places_.try_emplace(key);
    if (!is_new) return place->second;
    std::size_t process = 0;
    for (; process < processes_.size(); ++process)
      if (names_[process] == process_ && !has_communicator(processes_[process])) break;
    if (process == processes_.size()) {
      processes_.push_back({source_, {}, {}});
      names_.push_back(process_);
    }
    processes_[process].communicators.push_back(header_);
    place->second = {process,
                     static_cast<std::int32_t>(processes_[process].communicators.size() - 1)};
    return place->second;
  }

  bool has_communicator(const InspectorProcess& process) const {
    return std::ranges::any_of(process.communicators, [&](const InspectorCommunicator& each) {
      return each.id == header_.id;
    });
  }

  std::string source_;
  // Host and process of the last line that named them.
  std::string process_;
  InspectorCommunicator header_;
  std::vector<InspectorProcess> processes_;
  std::vector<std::string> names_;
  std::int64_t unreadable_lines_ = 0;
  std::map<std::tuple<std::string, std::string, std::int64_t, std::int64_t>,
           std::pair<std::size_t, std::int32_t>>
      places_;
};

}  // namespace

const InspectorCommunicator& InspectorProcess::world() const {
  return *std::ranges::max_element(communicators, {}, &InspectorCommunicator::ranks);
}

bool is_message(const InspectorCall& call) {
  return call.kind == OpKind::Send || call.kind == OpKind::Receive;
}

bool is_inspector_output(std::string_view head) {
  const auto has = [&](const char* text) { return head.find(text) != std::string_view::npos; };
  return has("\"coll_perf\"") || has("\"p2p_perf\"") ||
         (has("\"n_ranks\"") && has("\"header\"") && !has("traceEvents"));
}

std::vector<InspectorProcess> read_inspector(const std::string& file, const ReadingWatch& watch) {
  InspectorReader reader(file);
  for_each_line(open_inflated(file, kExpectedInspector, watch), file, kExpectedInspector,
                [&](const std::string& line, std::size_t) { reader.read(line); });
  return reader.take();
}

std::vector<InspectorProcess> parse_inspector(const std::string& text, const std::string& source) {
  InspectorReader reader(source);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) reader.read(line);
  return reader.take();
}

std::set<OpKind> kinds_timed_on_device(const std::vector<InspectorProcess>& processes) {
  std::set<OpKind> kinds;
  for (const InspectorProcess& process : processes)
    for (const InspectorCall& call : process.calls)
      if (call.by_device) kinds.insert(call.kind);
  return kinds;
}

void for_each_timed_call(
    const std::vector<InspectorProcess>& processes, bool messages,
    const std::function<void(const InspectorCommunicator&, const InspectorCall&)>& visit) {
  const std::set<OpKind> on_device = kinds_timed_on_device(processes);
  for (const InspectorProcess& process : processes)
    for (const InspectorCall& call : process.calls)
      if ((messages || !is_message(call)) && call.by_device == on_device.contains(call.kind))
        visit(process.communicators[static_cast<std::size_t>(call.communicator)], call);
}

std::vector<ExchangeSample> samples_of(const std::vector<InspectorProcess>& processes,
                                       const std::string& source) {
  // Kind, ranks, nodes and bytes.
  using Group = std::tuple<OpKind, std::int64_t, std::int64_t, double>;
  std::map<Group, std::vector<double>> groups;
  for_each_timed_call(
      processes, false, [&](const InspectorCommunicator& communicator, const InspectorCall& call) {
        groups[{call.kind, communicator.ranks, communicator.nodes, call.bytes.value()}].push_back(
            call.time.value());
      });
  if (groups.empty())
    throw InputError(source, {{"", "no line that states a collective", kExpectedInspector}});
  std::vector<ExchangeSample> samples;
  for (const auto& [group, times] : groups) {
    const auto& [kind, ranks, nodes, bytes] = group;
    samples.push_back({.kind = kind,
                       .members = ranks,
                       .bytes = Bytes(bytes),
                       .time = Seconds(quantile(times, kUsualTransfer)),
                       .spread = HostSpread{.hosts = nodes}});
  }
  return samples;
}

}  // namespace shardwright::calibration
