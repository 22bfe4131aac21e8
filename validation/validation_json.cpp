#include <nlohmann/json.hpp>

#include "validation/validation.hpp"

namespace shardwright::validation {
namespace {

using Json = nlohmann::ordered_json;

Json summary_json(const calibration::ErrorSummary& summary) {
  Json json = to_json(summary);
  json["coverage"] = summary.n > 0 ? Json(summary.coverage) : Json();
  json["rank_correlation"] = summary.rank_correlation ? Json(*summary.rank_correlation) : Json();
  return json;
}

// Memory is predicted without an interval.
Json memory_summary_json(const calibration::ErrorSummary& summary) {
  Json json = to_json(summary);
  json["coverage"] = nullptr;
  return json;
}

Json summaries_json(const calibration::ErrorsByName& summaries,
                    Json (*json_of)(const calibration::ErrorSummary&) = summary_json) {
  Json json = Json::object();
  for (const auto& [name, summary] : summaries) json[name] = json_of(summary);
  return json;
}

// The memory that the source's counter leaves out is a part of its own, so that the parts add up to
// `predicted_bytes`.
Json breakdown_json(const RowComparison& row) {
  Json breakdown = sim::memory_json(row.predicted_peak)["breakdown"];
  breakdown["not_counted"] = (row.predicted_memory - row.predicted_peak.peak).value();
  return breakdown;
}

Json row_json(const RowComparison& row) {
  Json json = {{"id", row.id}, {"source", row.source}, {"grade", row.grade}};
  json["parallelism"] = row.skipped ? Json() : Json(row.parallelism);
  const bool shown = row.timed && !row.skipped;
  json["metric"] = shown ? Json(row.metric) : Json();
  json["measured"] = shown ? Json(row.measured) : Json();
  json["predicted"] = shown ? Json(row.predicted) : Json();
  json["interval"] = shown ? Json::array({row.interval_low, row.interval_high}) : Json();
  json["class"] = shown ? Json(row.prediction_class) : Json();
  json["error_pct"] = shown ? Json(100.0 * row.error) : Json();
  json["memory"] = {
      {"measured_bytes", row.measured_memory ? Json(row.measured_memory->value()) : Json()},
      {"predicted_bytes", row.skipped ? Json() : Json(row.predicted_memory.value())}};
  if (!row.skipped) {
    json["memory"]["breakdown"] = breakdown_json(row);
    json["memory"]["fits_measured"] = !row.out_of_memory_measured;
    json["memory"]["fits_predicted"] = !row.out_of_memory_predicted;
    json["time"] = sim::time_json(row.predicted_time);
  }
  json["status"] = row.skipped ? "skipped" : "ok";
  json["reason"] = row.reason;
  json["stated"] = {{"accelerator", row.accelerator}, {"stack", row.stack}};
  json["profiles"] = row.skipped ? Json()
                                 : Json{{"accelerator", row.accelerator_profile},
                                        {"cluster", row.cluster_profile},
                                        {"stack", row.stack_profile}};
  json["run"] = row.skipped ? Json() : Json{{"kind", row.run_kind},
                                            {"architecture", row.architecture},
                                            {"family", row.family},
                                            {"experts", row.experts},
                                            {"low_precision", row.low_precision},
                                            {"accelerators", row.accelerators},
                                            {"sequence", row.sequence}};
  json["filled_in"] = row.filled_in;
  json["chosen"] = row.skipped ? Json() : Json::parse(row.chosen);
  return json;
}

}  // namespace

nlohmann::ordered_json to_json(const ValidationReport& report) {
  Json rows = Json::array();
  for (const RowComparison& row : report.rows) rows.push_back(row_json(row));
  Json summary = summary_json(report.time);
  summary["skipped"] = report.skipped;
  summary["other_grades"] = report.other_grades;
  summary["by_source"] = summaries_json(report.by_source);
  summary["by_accelerator"] = summaries_json(report.by_accelerator);
  summary["by_stack"] = summaries_json(report.by_stack);
  summary["by_parallelism"] = summaries_json(report.by_parallelism);
  summary["by_class"] = summaries_json(report.by_class);
  summary["memory"] = memory_summary_json(report.memory);
  summary["memory_by_source"] = summaries_json(report.memory_by_source, memory_summary_json);
  const OutOfMemoryTable& oom = report.out_of_memory;
  return {{"rows", std::move(rows)},
          {"summary", std::move(summary)},
          {"oom",
           {{"tp", oom.true_positive},
            {"fp", oom.false_positive},
            {"tn", oom.true_negative},
            {"fn", oom.false_negative},
            {"tn_chosen_to_fit", oom.chosen_to_fit}}}};
}

}  // namespace shardwright::validation
