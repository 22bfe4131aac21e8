#include "validation/training_parameters.hpp"

#include <map>
#include <utility>

#include "core/spec/profile_library.hpp"
#include "sim/cost/attention_cost.hpp"

namespace shardwright::validation {
namespace {

// The common part of all parameters of one key. `applies` is true of scenarios that the figure has
// an effect on.
struct TrainingFigure {
  ProfileKind profile;
  const char* key;
  double low, high, typical, spread;
  bool logarithmic;
  bool (*applies)(const Scenario&);
  double (*get)(const Scenario&);
  void (*set)(Scenario&, double);
};

bool always(const Scenario&) {
  return true;
}

const std::vector<TrainingFigure>& figures() {
  static const std::vector<TrainingFigure> kFigures = {
      {ProfileKind::Accelerator, "efficiency/sustained_clock_ratio", 0.5, 1.0, 0.88, 0.08, false,
       always, [](const Scenario& each) { return each.cluster.accelerator.sustained_clock_ratio; },
       [](Scenario& each, double value) {
         each.cluster.accelerator.sustained_clock_ratio = value;
       }},
      {ProfileKind::Accelerator, "efficiency/sustained_fp8_clock_ratio", 0.5, 1.0, 0.88, 0.08,
       false,
       [](const Scenario& each) {
         return each.plan.precision == Precision::Fp8 &&
                each.cluster.accelerator.sustained_fp8_clock_ratio > 0.0;
       },
       [](const Scenario& each) { return each.cluster.accelerator.sustained_fp8_clock_ratio; },
       [](Scenario& each, double value) {
         each.cluster.accelerator.sustained_fp8_clock_ratio = value;
       }},
      // The range before any step was seen: 8 % between the whiskers of a box plot, 5.4 deviations
      // of a normal distribution, among the V100 and MI60 of five clusters (Sinha et al., SC22,
      // arXiv 2208.11035), with cold and hot ones apart and below full power less.
      {ProfileKind::AllAccelerators, "efficiency/speed_variation_ratio", 0.0, 0.05, 0.015, 0.015,
       false, [](const Scenario& each) { return each.plan.world_size() > 1; },
       [](const Scenario& each) { return each.cluster.accelerator.speed_variation; },
       [](Scenario& each, double value) { each.cluster.accelerator.speed_variation = value; }},
      // Shares of the speed of the best kernels that were measured.
      {ProfileKind::Stack, "fusion/attention_kernel_ratio", 0.2, 1.0, 0.95, 0.25, true,
       [](const Scenario& each) {
         return each.stack.fusion.flash_attention &&
                !sim::has_asynchronous_matrix_units(each.cluster.accelerator);
       },
       [](const Scenario& each) { return each.stack.fusion.attention_kernel_ratio; },
       [](Scenario& each, double value) { each.stack.fusion.attention_kernel_ratio = value; }},
      {ProfileKind::Stack, "fusion/hopper_attention_kernel_ratio", 0.2, 1.0, 0.75, 0.3, true,
       [](const Scenario& each) {
         return each.stack.fusion.flash_attention &&
                sim::has_asynchronous_matrix_units(each.cluster.accelerator);
       },
       [](const Scenario& each) { return each.stack.fusion.hopper_attention_kernel_ratio; },
       [](Scenario& each, double value) {
         each.stack.fusion.hopper_attention_kernel_ratio = value;
       }},
      {ProfileKind::Stack, "overlap/slowdown_ratio", 0.0, 0.5, 0.1, 0.1, false, always,
       [](const Scenario& each) { return each.stack.overlap.slowdown; },
       [](Scenario& each, double value) { each.stack.overlap.slowdown = value; }},
      {ProfileKind::Stack, "overlap/collective_slowdown_ratio", 0.0, 1.0, 0.1, 0.1, false, always,
       [](const Scenario& each) { return each.stack.overlap.collective_slowdown; },
       [](Scenario& each, double value) { each.stack.overlap.collective_slowdown = value; }},
      {ProfileKind::Stack, "overlap/tensor_parallel_share_ratio", 0.0, 1.0, 0.6, 0.2, false,
       [](const Scenario& each) { return each.stack.overlap.tensor_parallel && each.plan.tp > 1; },
       [](const Scenario& each) { return each.stack.overlap.tensor_parallel_share; },
       [](Scenario& each, double value) { each.stack.overlap.tensor_parallel_share = value; }},
      {ProfileKind::Stack, "communication/collective_ratio", 0.4, 1.0, 0.8, 0.15, true, always,
       [](const Scenario& each) { return each.stack.communication.collective_ratio; },
       [](Scenario& each, double value) { each.stack.communication.collective_ratio = value; }},
      {ProfileKind::Stack, "host/launch_s", 1e-6, 6e-5, 9e-6, 0.5, true, always,
       [](const Scenario& each) { return each.stack.host.launch_time.value(); },
       [](Scenario& each, double value) { each.stack.host.launch_time = Seconds(value); }}};
  return kFigures;
}

std::string profile_of(const TrainingFigure& figure, const Scenario& scenario) {
  switch (figure.profile) {
    case ProfileKind::Accelerator:
      return scenario.cluster.accelerator.name;
    case ProfileKind::AllAccelerators:
      return "all accelerators";
    case ProfileKind::Stack:
      return stack_that_states(scenario.stack.name, std::string("/") + figure.key);
  }
  return {};
}

}  // namespace

std::vector<TrainingParameter> training_parameters(const std::vector<Scenario>& scenarios,
                                                   std::size_t least_rows) {
  std::vector<TrainingParameter> parameters;
  for (const TrainingFigure& figure : figures()) {
    std::map<std::string, std::vector<std::size_t>> rows;
    for (std::size_t row = 0; row < scenarios.size(); ++row) {
      if (figure.applies(scenarios[row])) rows[profile_of(figure, scenarios[row])].push_back(row);
    }
    for (auto& [profile, governed] : rows) {
      if (governed.size() < least_rows) continue;
      std::set<std::string> profiles = {profile};
      if (figure.profile == ProfileKind::AllAccelerators) {
        profiles.clear();
        for (const std::size_t row : governed)
          profiles.insert(scenarios[row].cluster.accelerator.name);
      }
      parameters.push_back({figure.profile, profile, figure.key, figure.low, figure.high,
                            figure.typical, figure.spread, figure.logarithmic, figure.get,
                            figure.set, std::move(governed), std::move(profiles)});
    }
  }
  return parameters;
}

}  // namespace shardwright::validation
