#include "cli/commands/import_refit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "calibration/trace_samples.hpp"
#include "core/base/distinct_names.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/step/predicted_timeline.hpp"

namespace shardwright::cli {
namespace {

// True if the name of a trace's GPU, as its driver gives it, is one of the accelerator or holds
// one.
bool is_gpu_of(const std::string& gpu, const AcceleratorSpec& accelerator) {
  if (gpu.empty()) return true;
  if (const auto shipped = find_accelerator(gpu)) return *shipped == accelerator.name;
  return std::ranges::any_of(accelerator.aliases, [&](const std::string& alias) {
    return gpu.find(alias) != std::string::npos;
  });
}

// Why the traces say nothing of the profile; empty if they do.
std::string reason_against_refit(const Profile& profile,
                                 const std::vector<calibration::Trace>& traces) {
  const AcceleratorSpec& accelerator = profile.cluster.accelerator;
  for (const calibration::Trace& trace : traces) {
    if (!is_gpu_of(trace.gpu, accelerator))
      return fmt::format("{} is of {}, and the profile of {}", trace.file, trace.gpu,
                         accelerator.name);
  }
  return are_of_one_gpu(traces) ? "" : "the traces are of different GPUs";
}

// True if too few products of the plan have a kernel: the traces are of another one.
bool lacks_products(const std::vector<calibration::ProgramMatch>& matches) {
  constexpr double kLeastMatched = 0.5;
  double ops = 0.0, matched = 0.0;
  for (const calibration::ProgramMatch& match : matches) {
    for (const calibration::MatchedOp& op : match.ops) {
      if (op.kind != OpKind::Gemm || op.unrecorded > Seconds(0.0)) continue;
      ops += op.ops;
      matched += op.matched;
    }
  }
  return ops > 0.0 && matched < kLeastMatched * ops;
}

// Adds to `warnings` what the refit leaves out.
calibration::Calibration refit(const Profile& profile,
                               const std::vector<calibration::Trace>& traces,
                               const std::vector<calibration::ProgramMatch>& matches,
                               const std::optional<calibration::RankMatching>& matching,
                               std::vector<std::string>& warnings) {
  std::vector<std::string> names;
  for (const calibration::Trace& trace : traces) names.push_back(trace.file);
  calibration::CalibrationData data;
  data.recorded = calibration::samples_of(traces, matches, matching, profile.cluster);
  warnings.insert(warnings.end(), data.recorded->left_out.begin(), data.recorded->left_out.end());
  data.stack = profile.stack;
  return calibration::calibrate(
      profile.cluster, data,
      fmt::format("shardwright import {}", fmt::join(distinct_names(names), ", ")));
}

}  // namespace

std::size_t first_with_device(const std::vector<calibration::Trace>& traces) {
  const auto found = std::ranges::find_if(
      traces, [](const calibration::Trace& trace) { return !trace.activities.empty(); });
  return found == traces.end() ? 0 : static_cast<std::size_t>(found - traces.begin());
}

bool are_of_one_gpu(const std::vector<calibration::Trace>& traces) {
  const std::string& gpu = traces[first_with_device(traces)].gpu;
  return std::ranges::all_of(traces, [&](const calibration::Trace& trace) {
    return trace.activities.empty() || trace.gpu == gpu;
  });
}

std::vector<calibration::ProgramMatch> match_plan(const std::vector<calibration::Trace>& traces,
                                                  const Scenario& scenario) {
  const std::optional<sim::TracedStep> step =
      sim::trace_step(calibration::at_clock_of(traces, scenario));
  std::vector<calibration::ProgramMatch> matches;
  for (const calibration::Trace& trace : traces) {
    const calibration::PlannedStep planned =
        calibration::planned_step(*step, calibration::stage_of(trace, scenario.plan));
    if (auto match = calibration::match_program(trace, planned, &scenario.cluster.accelerator))
      matches.push_back(std::move(*match));
  }
  return matches;
}

std::string other_shapes_warning(const std::vector<calibration::ProgramMatch>& matches) {
  for (const calibration::ProgramMatch& match : matches) {
    const calibration::MatchedOp* op = calibration::op_above_peak(match);
    if (op == nullptr) continue;
    return fmt::format(
        "The plan's shapes are not those of the trace: {} would run at {} % of the device's peak.",
        op->name, format_percent(op->roofline->of_peak));
  }
  return "";
}

Refit refit_profile(const Profile& profile, const std::vector<calibration::Trace>& traces,
                    const std::vector<calibration::ProgramMatch>& matches,
                    const std::optional<calibration::RankMatching>& matching) {
  Refit result;
  if (const std::string reason = reason_against_refit(profile, traces); !reason.empty()) {
    result.warnings.emplace_back("The profile is not refitted: " + reason + ".");
    return result;
  }
  const bool lacks = lacks_products(matches);
  const bool other = lacks || !other_shapes_warning(matches).empty();
  if (other) {
    result.warnings.push_back(
        fmt::format("{}the refit uses only products whose shapes the trace tells.",
                    lacks ? "Most matrix products of the plan have no kernel: the plan is not that "
                            "of the trace, and "
                          : "As the plan's shapes are others, "));
  }
  const bool communicates = std::ranges::any_of(
      traces, [](const calibration::Trace& trace) { return !trace.collectives.empty(); });
  if (communicates && !matching) {
    result.warnings.emplace_back(
        "Links and collectives are not refitted: what a single rank records contains its wait for "
        "the others. Give the traces of several ranks.");
  }
  result.warnings.emplace_back(
      "The host's time for a launch is not refitted: the profiler that records its calls slows "
      "it.");
  result.calibration =
      refit(profile, traces, other ? std::vector<calibration::ProgramMatch>{} : matches, matching,
            result.warnings);
  return result;
}

}  // namespace shardwright::cli
