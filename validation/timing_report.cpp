#include "validation/timing_report.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/json_reader.hpp"
#include "validation/measurement.hpp"

namespace shardwright::validation {
namespace {

using Json = nlohmann::ordered_json;

Json row_json(const TimingComparison& row) {
  return {{"id", row.id},
          {"device", row.device},
          {"op", row.op},
          {"profile", row.profile},
          {"metric", "time_s"},
          {"measured", row.skipped ? Json() : Json(row.measured.value())},
          {"predicted", row.skipped ? Json() : Json(row.predicted.value())},
          {"error_pct", row.skipped ? Json() : Json(100.0 * row.error())},
          {"status", row.skipped ? "skipped" : "ok"},
          {"reason", row.reason},
          {"filled_in", row.filled_in}};
}

struct SizeClass {
  const char* name;
  Bytes below;
};

constexpr std::array kSizeClasses = {
    SizeClass{"below 1 MB", Bytes(1e6)}, SizeClass{"1 to 8 MB", Bytes(8e6)},
    SizeClass{"8 to 130 MB", Bytes(130e6)}, SizeClass{"from 130 MB", infinite<Bytes>()}};

std::size_t size_class(Bytes bytes) {
  std::size_t index = 0;
  while (bytes >= kSizeClasses[index].below) ++index;
  return index;
}

}  // namespace

void read_origin(ObjectReader& row, calibration::Timing& timing) {
  timing.id = row.name("id");
  timing.source = read_published_source(row.object("source")).title;
  row.boolean_or("verified", false);
  timing.unsupported = row.text_or("unsupported", "");
  if (row.has("assumed")) timing.assumed = row.texts("assumed");
  row.text_or("notes", "");
}

TimingComparison described(const calibration::Timing& timing) {
  TimingComparison row;
  row.id = timing.id;
  row.source = timing.source;
  row.device = timing.gpu;
  row.filled_in = timing.assumed;
  row.reason = timing.unsupported;
  row.measured = timing.measured;
  return row;
}

TimingReport report_on(std::vector<TimingComparison> rows) {
  TimingReport report;
  std::vector<calibration::ErrorSample> all;
  calibration::SamplesByName device, op, source, device_and_op;
  std::array<std::vector<calibration::ErrorSample>, kSizeClasses.size()> sizes;
  for (const TimingComparison& row : rows) {
    if (row.skipped) {
      ++report.skipped;
      ++report.skipped_by_reason[row.reason];
      continue;
    }
    const calibration::ErrorSample sample{row.error(), false};
    all.push_back(sample);
    device[row.device].push_back(sample);
    op[row.op].push_back(sample);
    source[row.source].push_back(sample);
    device_and_op[row.device + "  " + row.op].push_back(sample);
    if (row.bytes > Bytes(0)) sizes[size_class(row.bytes)].push_back(sample);
  }
  report.all = calibration::summarise(all);
  report.by_device = calibration::summarise_each(device);
  report.by_op = calibration::summarise_each(op);
  report.by_source = calibration::summarise_each(source);
  report.by_device_and_op = calibration::summarise_each(device_and_op);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (!sizes[i].empty())
      report.by_size.emplace_back(kSizeClasses[i].name, calibration::summarise(sizes[i]));
  report.rows = std::move(rows);
  return report;
}

nlohmann::ordered_json to_json(const TimingReport& report) {
  Json rows = Json::array();
  for (const TimingComparison& row : report.rows) rows.push_back(row_json(row));
  Json summary = to_json(report.all);
  summary["skipped"] = report.skipped;
  summary["skipped_by_reason"] = report.skipped_by_reason;
  summary["by_device"] = to_json(report.by_device);
  summary["by_op"] = to_json(report.by_op);
  summary["by_device_and_op"] = to_json(report.by_device_and_op);
  summary["by_source"] = to_json(report.by_source);
  if (!report.by_size.empty()) summary["by_size"] = Json::object();
  for (const auto& [name, errors] : report.by_size) summary["by_size"][name] = to_json(errors);
  return {{"rows", std::move(rows)}, {"summary", std::move(summary)}};
}

}  // namespace shardwright::validation
