#include "calibration/collective_timings.hpp"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
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

// NCCL's own messages may stand before the table.
constexpr std::size_t kHeadOfTimings = 64U << 10U;

// What -J writes has the program among its arguments.
bool is_nccl_tests_output(std::string_view head) {
  const auto has = [&](const char* text) { return head.find(text) != std::string_view::npos; };
  if (head.starts_with('{')) return has("_perf") && has("\"args\"") && !has("traceEvents");
  return has("# Collective test starting") || has("# nThread") || (has("algbw") && has("busbw"));
}

// The times of each kind, group size and size in bytes.
using Groups = std::map<std::tuple<OpKind, std::int64_t, double>, std::vector<Seconds>>;

}  // namespace

bool is_collective_file(const std::string& file) {
  if (!kind_unless_regular(file).empty()) return false;
  std::string head(kHeadOfTimings, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(stream.gcount()));
  if (head.find('\0') != std::string::npos) return false;
  return is_inspector_output(head) || is_nccl_tests_output(head);
}

CollectiveFile read_collective_file(const std::string& file) {
  Groups groups;
  for (const ExchangeSample& each : read_nccl_tests(file, InspectorTimes::All).samples)
    groups[{each.kind, each.members, each.bytes.value()}].push_back(each.time);
  CollectiveFile result{file, {}};
  for (const auto& [group, times] : groups) {
    const auto& [kind, members, bytes] = group;
    const Seconds median = median_of(times);
    result.collectives.push_back({kind, Bytes(bytes), members,
                                  static_cast<std::int64_t>(times.size()), median,
                                  Bytes(bytes) * sim::bus_factor(kind, members) / median});
  }
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
                           {"bus_bandwidth_bytes_per_s", each.bus_bandwidth.value()}});
  return {{"path", printable(file.file)}, {"collectives", std::move(collectives)}};
}

}  // namespace shardwright::calibration
