#include "calibration/nccl_inspector.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <tuple>

#include "calibration/error_statistics.hpp"
#include "calibration/traces/kernel_category.hpp"
#include "core/base/error.hpp"

namespace shardwright::calibration {
namespace {

constexpr const char* kExpectedInspector =
    "output of NCCL's Inspector: lines with \"header\" and \"coll_perf\"";
constexpr double kUsualTransfer = 0.25;

// The number at a key; none if it is no number, or not above zero.
std::optional<double> positive_at(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const double value = *found;
  return value > 0.0 && value < 1e18 ? std::optional(value) : std::nullopt;
}

std::optional<OpKind> kind_named(const nlohmann::json& performance) {
  const auto name = performance.find("coll");
  if (name == performance.end() || !name->is_string()) return std::nullopt;
  const std::string kind = collective_kind(name->get<std::string>());
  for (const OpKind each : {OpKind::AllReduce, OpKind::AllGather, OpKind::ReduceScatter,
                            OpKind::AllToAll, OpKind::Broadcast})
    if (kind == shardwright::name_of(each)) return each;
  return std::nullopt;
}

class InspectorReader {
 public:
  void read(const std::string& line) {
    const auto object = nlohmann::json::parse(line, nullptr, false);
    if (!object.is_object()) return;
    if (const auto header = object.find("header"); header != object.end() && header->is_object()) {
      ranks_ = positive_at(*header, "n_ranks").value_or(0.0);
      nodes_ = positive_at(*header, "nnodes").value_or(1.0);
    }
    if (const auto found = object.find("coll_perf"); found != object.end() && found->is_object())
      add(*found);
  }

  std::vector<ExchangeSample> take(const std::string& source, InspectorTimes which) {
    auto& groups = by_device_.empty() ? by_host_ : by_device_;
    if (groups.empty())
      throw InputError(source, {{"", "no line that states a collective", kExpectedInspector}});
    std::vector<ExchangeSample> samples;
    for (auto& [group, times] : groups) {
      const auto& [kind, ranks, nodes, bytes] = group;
      if (which == InspectorTimes::LowerQuartile) times = {quantile(times, kUsualTransfer)};
      for (const double time : times)
        samples.push_back({.kind = kind,
                           .members = ranks,
                           .bytes = Bytes(bytes),
                           .time = Seconds(time * 1e-6),
                           .spread = HostSpread{.hosts = nodes}});
    }
    return samples;
  }

 private:
  // Kind, ranks, nodes and bytes.
  using Group = std::tuple<OpKind, std::int64_t, std::int64_t, double>;

  void add(const nlohmann::json& performance) {
    const std::optional<OpKind> kind = kind_named(performance);
    const auto bytes = positive_at(performance, "coll_msg_size_bytes"),
               time = positive_at(performance, "coll_exec_time_us");
    if (!kind || !bytes || !time || ranks_ < 2.0) return;
    const auto source = performance.find("coll_timing_source");
    const bool is_by_device = source == performance.end() || !source->is_string() ||
                              source->get<std::string>().find("gpu") != std::string::npos;
    const Group group{*kind, static_cast<std::int64_t>(ranks_), static_cast<std::int64_t>(nodes_),
                      *bytes};
    (is_by_device ? by_device_ : by_host_)[group].push_back(*time);
  }

  double ranks_ = 0.0, nodes_ = 1.0;
  // Microseconds.
  std::map<Group, std::vector<double>> by_device_, by_host_;
};

}  // namespace

bool is_inspector_output(std::string_view head) {
  const auto has = [&](const char* text) { return head.find(text) != std::string_view::npos; };
  return has("\"coll_perf\"") || (has("\"n_ranks\"") && has("\"header\"") && !has("traceEvents"));
}

std::vector<ExchangeSample> parse_inspector(const std::string& text, const std::string& source,
                                            InspectorTimes which) {
  InspectorReader reader;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) reader.read(line);
  return reader.take(source, which);
}

}  // namespace shardwright::calibration
