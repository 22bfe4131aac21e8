#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "calibration/traces/program_match.hpp"
#include "calibration/traces/trace_report.hpp"
#include "core/base/printable_text.hpp"

namespace shardwright::calibration {
namespace {

constexpr std::size_t kMostDifferences = 10;
// Counts of calls that differ by less do not tell of fusion.
constexpr double kFusion = 1.2;
// Differences below this share of the step are rounding.
constexpr double kLeastDifference = 1e-4;

std::string title_of(const MatchedOp& op) {
  return is_memory_bound(op.kind) ? op.name : fmt::format("{}, {}", op.name, name_of(op.phase));
}

// The two formats of 16 bits run at the same rate.
bool has_other_format(const MatchedOp& op) {
  const auto is_half = [](Precision precision) {
    return precision == Precision::Bf16 || precision == Precision::Fp16;
  };
  return op.measured_precision && *op.measured_precision != op.precision &&
         !(is_half(*op.measured_precision) && is_half(op.precision));
}

// The calls that the plan's stack needs for the ops that have a partner.
double planned_calls(const MatchedOp& op) {
  const auto* work = std::get_if<MemoryWork>(&op.work);
  return work == nullptr ? op.matched : std::max(op.matched, static_cast<double>(work->kernels));
}

DifferenceCause cause_of(const MatchedOp& op) {
  const bool slower = op.measured > op.predicted;
  const double planned = planned_calls(op);
  // Functions over lists of tensors run once for each format.
  const bool is_over_lists = op.kind == OpKind::Optimizer || op.kind == OpKind::GradientNorm;
  if (slower && op.calls > kFusion * planned + (is_over_lists ? 1.0 : 0.0))
    return DifferenceCause::MissingFusion;
  if (!slower && op.calls * kFusion < planned) return DifferenceCause::MoreFusion;
  if (has_other_format(op)) return DifferenceCause::OtherFormat;
  return slower ? DifferenceCause::SlowerKernel : DifferenceCause::FasterKernel;
}

void add_op(const MatchedOp& op, std::vector<StepDifference>& differences) {
  const Seconds missing = op.planned - op.predicted - op.unrecorded;
  const bool is_absent = op.matched <= 0.0 || op.kernels <= 0.0;
  if (is_communication(op.kind)) {
    if (is_absent) return;
    differences.push_back({title_of(op),
                           op.measured_exposed > op.predicted_exposed
                               ? DifferenceCause::ExposedCollective
                               : DifferenceCause::HiddenCollective,
                           op.predicted_exposed, op.measured_exposed});
    return;
  }
  if (is_absent) {
    differences.push_back(
        {title_of(op), DifferenceCause::NotInTrace, op.planned - op.unrecorded, {}});
    return;
  }
  differences.push_back({title_of(op), cause_of(op), op.predicted, op.measured});
  if (missing > Seconds(0.0))
    differences.push_back({title_of(op), DifferenceCause::NotInTrace, missing, {}});
}

nlohmann::ordered_json json_of(const Work& work) {
  if (const auto* gemm = std::get_if<GemmWork>(&work))
    return {{"m", gemm->m}, {"n", gemm->n}, {"k", gemm->k}, {"batch", gemm->batch}};
  if (const auto* attention = std::get_if<AttentionWork>(&work))
    return {{"batch", attention->batch},
            {"heads", attention->heads},
            {"q_tokens", attention->q_tokens},
            {"kv_tokens", attention->kv_tokens}};
  if (const auto* message = std::get_if<CommunicationWork>(&work))
    return {{"bytes", message->bytes.value()}, {"group", name_of(message->group)}};
  return nullptr;
}

nlohmann::ordered_json json_of(const MatchedOp& op) {
  nlohmann::ordered_json json = {
      {"name", op.name},
      {"kind", name_of(op.kind)},
      {"phase", is_memory_bound(op.kind) ? nlohmann::ordered_json()
                                         : nlohmann::ordered_json(name_of(op.phase))},
      {"precision", name_of(op.precision)},
      {"measured_precision", op.measured_precision
                                 ? nlohmann::ordered_json(name_of(*op.measured_precision))
                                 : nlohmann::ordered_json()},
      {"work", json_of(op.work)},
      {"ops", op.ops},
      {"matched_ops", op.matched},
      {"kernels", op.kernels},
      {"planned_s", op.planned.value()},
      {"predicted_s", op.predicted.value()},
      {"measured_s", op.measured.value()},
      {"median_measured_s", op.times.empty()
                                ? nlohmann::ordered_json()
                                : nlohmann::ordered_json(median_of(op.times).value())}};
  json["roofline"] = nullptr;
  if (op.roofline) json["roofline"] = to_json(*op.roofline);
  if (is_communication(op.kind)) {
    json["predicted_exposed_s"] = op.predicted_exposed.value();
    json["measured_exposed_s"] = op.measured_exposed.value();
  }
  return json;
}

nlohmann::ordered_json json_by_kind(const std::vector<MatchedOp>& ops) {
  auto kinds = nlohmann::ordered_json::array();
  for (const OpKind kind : enumerators<OpKind>()) {
    MatchedOp sum;
    for (const MatchedOp& op : ops) {
      if (op.kind != kind) continue;
      sum.ops += op.ops;
      sum.matched += op.matched;
      sum.kernels += op.kernels;
      sum.planned += op.planned;
      sum.predicted += op.predicted;
      sum.measured += op.measured;
    }
    if (sum.ops <= 0.0) continue;
    kinds.push_back({{"kind", name_of(kind)},
                     {"ops", sum.ops},
                     {"matched_ops", sum.matched},
                     {"kernels", sum.kernels},
                     {"planned_s", sum.planned.value()},
                     {"predicted_s", sum.predicted.value()},
                     {"measured_s", sum.measured.value()}});
  }
  return kinds;
}

}  // namespace

std::vector<StepDifference> differences_of(const ProgramMatch& match) {
  std::vector<StepDifference> differences;
  Seconds exposed_of_ops, unrecorded;
  for (const MatchedOp& op : match.ops) {
    // A forward pass may be recorded without a loss.
    if (match.forward_only && op.kind == OpKind::Loss && op.kernels <= 0.0) {
      unrecorded += op.planned;
      continue;
    }
    add_op(op, differences);
    if (!is_communication(op.kind)) unrecorded += op.unrecorded;
    exposed_of_ops += op.measured_exposed;
  }
  differences.push_back(
      {"backward pass, loss and optimizer", DifferenceCause::NotRecorded, unrecorded, {}});
  for (const StrayKernel& stray : match.strays)
    if (!stray.is_collective)
      differences.push_back({stray.name, DifferenceCause::NotInPlan, {}, stray.time});
  differences.push_back({"communication without an op in the plan",
                         DifferenceCause::ExposedCollective,
                         {},
                         std::max(Seconds(0.0), match.measured_exposed - exposed_of_ops)});
  differences.push_back({"waits for the host", DifferenceCause::HostBoundGap,
                         match.predicted_host_gaps, match.measured_host_gaps});
  differences.push_back({"other idle times", DifferenceCause::OtherGap, match.predicted_other_gaps,
                         match.measured_other_gaps});
  return largest_differences(std::move(differences),
                             std::max(match.predicted_step, match.measured_step));
}

std::vector<StepDifference> largest_differences(std::vector<StepDifference> differences,
                                                Seconds step) {
  std::stable_sort(differences.begin(), differences.end(),
                   [](const StepDifference& a, const StepDifference& b) {
                     return std::abs(a.difference().value()) > std::abs(b.difference().value());
                   });
  const Seconds least = step * kLeastDifference;
  std::erase_if(differences, [&](const StepDifference& each) {
    return std::abs(each.difference().value()) <= least.value();
  });
  if (differences.size() > kMostDifferences) differences.resize(kMostDifferences);
  return differences;
}

nlohmann::ordered_json to_json(const ProgramMatch& match) {
  auto ops = nlohmann::ordered_json::array();
  for (const MatchedOp& op : match.ops) ops.push_back(json_of(op));
  auto strays = nlohmann::ordered_json::array();
  for (const StrayKernel& stray : match.strays)
    strays.push_back({{"name", printable(stray.name)},
                      {"count", stray.count},
                      {"measured_s", stray.time.value()}});
  auto differences = nlohmann::ordered_json::array();
  for (const StepDifference& each : match.differences)
    differences.push_back({{"about", printable(each.about)},
                           {"cause", name_of(each.cause)},
                           {"predicted_s", each.predicted.value()},
                           {"measured_s", each.measured.value()},
                           {"difference_s", each.difference().value()}});
  const auto both = [](Seconds predicted, Seconds measured) -> nlohmann::ordered_json {
    return {{"predicted_s", predicted.value()}, {"measured_s", measured.value()}};
  };
  return {{"path", printable(match.file)},
          {"rank", match.rank ? nlohmann::ordered_json(*match.rank) : nullptr},
          {"stage", match.stage},
          {"steps", match.steps},
          {"steps_inferred", match.steps_inferred},
          {"forward_only", match.forward_only},
          {"step", both(match.predicted_step, match.measured_step)},
          {"exposed_communication", both(match.predicted_exposed, match.measured_exposed)},
          {"host_bound_gaps", both(match.predicted_host_gaps, match.measured_host_gaps)},
          {"other_gaps", both(match.predicted_other_gaps, match.measured_other_gaps)},
          {"by_kind", json_by_kind(match.ops)},
          {"ops", std::move(ops)},
          {"kernels_not_in_plan", std::move(strays)},
          {"differences", std::move(differences)}};
}

}  // namespace shardwright::calibration
