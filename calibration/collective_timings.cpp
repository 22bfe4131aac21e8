#include "calibration/collective_timings.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "calibration/nccl_inspector.hpp"
#include "calibration/nccl_tests.hpp"
#include "calibration/traces/trace_report.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/untrusted_file.hpp"
#include "sim/cost/collective_cost.hpp"

namespace shardwright::calibration {
namespace {

// What -J writes has the program among its arguments.
bool is_nccl_tests_output(std::string_view head) {
  const auto has = [&](const char* text) { return head.find(text) != std::string_view::npos; };
  if (head.starts_with('{')) return has("_perf") && has("\"args\"") && !has("traceEvents");
  return has("# Collective test starting") || has("# nThread") || (has("algbw") && has("busbw"));
}

// The times of each kind, group size and size in bytes.
using Groups = std::map<std::tuple<OpKind, std::int64_t, double>, std::vector<Seconds>>;

std::vector<CollectiveTimings> timings_of_groups(const Groups& groups) {
  std::vector<CollectiveTimings> timings;
  for (const auto& [group, times] : groups) {
    const auto& [kind, members, bytes] = group;
    const Seconds median = median_of(times);
    timings.push_back({kind, Bytes(bytes), members, static_cast<std::int64_t>(times.size()), median,
                       Bytes(bytes) * sim::bus_factor(kind, members) / median});
  }
  return timings;
}

}  // namespace

bool is_collective_file(const std::string& file) {
  if (!kind_unless_regular(file).empty()) return false;
  const std::string head = head_of_timings(file);
  if (head.find('\0') != std::string::npos) return false;
  return is_inspector_output(head) || is_nccl_tests_output(head);
}

std::vector<CollectiveTimings> timings_of(const std::vector<InspectorProcess>& processes) {
  Groups groups;
  for_each_timed_call(processes, true,
                      [&](const InspectorCommunicator& communicator, const InspectorCall& call) {
                        const std::int64_t members = is_message(call) ? 2 : communicator.ranks;
                        groups[{call.kind, members, call.bytes.value()}].push_back(call.time);
                      });
  std::vector<CollectiveTimings> timings = timings_of_groups(groups);
  const std::set<OpKind> on_device = kinds_timed_on_device(processes);
  for (CollectiveTimings& each : timings) each.by_host = !on_device.contains(each.kind);
  return timings;
}

CollectiveFile read_collective_file(const std::string& file, const ReadingWatch& watch) {
  CollectiveFile result{file, {}, {}, {}};
  if (is_inspector_output(head_of_timings(file))) {
    result.processes = read_inspector(file, watch);
    result.collectives = timings_of(result.processes);
    return result;
  }
  Groups groups;
  NcclTimings timings = read_nccl_tests(file);
  result.left_out = std::move(timings.left_out);
  result.has_wrong_data = timings.has_wrong_data;
  for (const ExchangeSample& each : timings.samples)
    groups[{each.kind, each.members, each.bytes.value()}].push_back(each.time);
  result.collectives = timings_of_groups(groups);
  return result;
}

nlohmann::ordered_json to_json(const CollectiveFile& file) {
  auto collectives = nlohmann::ordered_json::array();
  for (const CollectiveTimings& each : file.collectives)
    collectives.push_back({{"kind", shardwright::name_of(each.kind)},
                           {"bytes", static_cast<std::int64_t>(each.bytes.value())},
                           {"group_size", each.group_size},
                           {"count", each.count},
                           {"median_s", each.median.value()},
                           {"bus_bandwidth_bytes_per_s", each.bus_bandwidth.value()},
                           {"timed_by", each.by_host ? "host" : "device"}});
  // Those of a trace, in its order.
  nlohmann::ordered_json json = {{"path", printable(file.file)},
                                 {"gpu", nullptr},
                                 {"rank", nullptr},
                                 {"world_size", nullptr},
                                 {"kernels", nullptr},
                                 {"steps", nlohmann::ordered_json::array()},
                                 {"busy_s", nullptr},
                                 {"compute_busy_s", nullptr},
                                 {"collective_busy_s", nullptr},
                                 {"exposed_collective_s", nullptr}};
  Seconds total;
  for (const InspectorProcess& process : file.processes)
    for (const InspectorCall& call : process.calls) total += call.time;
  if (file.processes.size() == 1) json["rank"] = file.processes.front().world().rank;
  if (!file.processes.empty()) json["world_size"] = file.processes.front().world().ranks;
  json["time"] = {{"gemm_s", nullptr},       {"attention_s", nullptr},   {"elementwise_s", nullptr},
                  {"collective_s", nullptr}, {"memory_copy_s", nullptr}, {"other_s", nullptr}};
  if (!file.processes.empty()) json["time"]["collective_s"] = total.value();
  json["collectives"] = std::move(collectives);
  return json;
}

}  // namespace shardwright::calibration
