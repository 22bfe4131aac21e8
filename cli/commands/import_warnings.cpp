#include "cli/commands/import_warnings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "calibration/traces/rank_matching.hpp"
#include "core/base/printable_text.hpp"

namespace shardwright::cli {

std::vector<std::string> take_times_from_throughput(std::vector<calibration::TrainingLog>& logs,
                                                    const Plan& plan) {
  const auto samples = static_cast<double>(plan.global_batch);
  const double tokens = samples * static_cast<double>(plan.seq_len);
  std::vector<std::string> warnings;
  for (calibration::TrainingLog& log : logs) {
    log.take_times_from_throughput(tokens / static_cast<double>(plan.world_size()), samples);
    if (!log.step())
      warnings.push_back(fmt::format(
          "No step of {} stands beside the plan's: the log states no times and no throughput.",
          printable(log.file)));
  }
  return warnings;
}

std::vector<std::string> warnings_of_other_gpus(const std::vector<calibration::Trace>& known,
                                                const std::vector<calibration::Trace>& held_out) {
  std::vector<std::string> warnings;
  for (const calibration::Trace& trace : held_out) {
    const auto is_same = [&](const calibration::Trace& each) { return each.gpu == trace.gpu; };
    if (!known.empty() && std::ranges::none_of(known, is_same))
      warnings.push_back(fmt::format("{} is of another GPU ({}) than the traces that predict it.",
                                     printable(trace.file),
                                     trace.gpu.empty() ? "unnamed" : printable(trace.gpu)));
  }
  return warnings;
}

std::vector<std::string> warnings_of_batches(const std::vector<calibration::TrainingLog>& logs,
                                             const Plan& plan) {
  std::vector<std::string> warnings;
  for (const calibration::TrainingLog& log : logs) {
    const std::optional<double> batch = log.steps.back().global_batch;
    if (!batch || *batch == static_cast<double>(plan.global_batch)) continue;
    warnings.push_back(fmt::format("A step of {} has {:g} sequences, one of the plan {}.",
                                   printable(log.file), *batch, plan.global_batch));
  }
  return warnings;
}

std::vector<std::string> warnings_about(const std::vector<calibration::Trace>& traces) {
  std::vector<std::string> warnings;
  if (const std::string obstacle = calibration::obstacle_to_matching(traces); !obstacle.empty())
    warnings.push_back(
        fmt::format("The traces are not compared as ranks of one run: {}.", obstacle));
  std::set<std::string> gpus;
  for (const calibration::Trace& trace : traces)
    if (!trace.gpu.empty()) gpus.insert(printable(trace.gpu));
  if (gpus.size() > 1)
    warnings.push_back(fmt::format(
        "The traces are of different GPUs, and their mean is of none: {}.", fmt::join(gpus, ", ")));
  return warnings;
}

}  // namespace shardwright::cli
