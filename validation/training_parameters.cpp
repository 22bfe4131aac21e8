// The figures of accelerators and stacks that measured training steps can determine.
#include <map>
#include <utility>

#include "core/spec/profile_library.hpp"
#include "sim/cost/attention_cost.hpp"
#include "validation/training_fit.hpp"

namespace shardwright::validation {
namespace {

// A figure of any profile. `applies` is true of scenarios that it has an effect on.
struct TrainingFigure {
  bool (*applies)(const Scenario&);
  // The part that is common to all parameters of the figure.
  TrainingParameter parameter;
  // The end of the physical range, where it depends on the profile.
  double (*most)(const Scenario&) = nullptr;
};

bool always(const Scenario&) {
  return true;
}

// No attention is faster than the best kernel of the device.
double most_of_attention(const Scenario& each) {
  return 1.0 /
         sim::attention_kernel_speed(each.stack.fusion.attention_kernel, each.cluster.accelerator);
}

struct FigureRange {
  double low, high, typical, spread;
  bool logarithmic;
  double common_share = 0.0;
};

double value_of(double ratio) {
  return ratio;
}
double value_of(Seconds time) {
  return time.value();
}

// `reach` finds the figure in a scenario.
template <class Reach>
TrainingFigure figure(ProfileKind kind, const char* key, const FigureRange& range,
                      bool (*applies)(const Scenario&), Reach reach,
                      double (*most)(const Scenario&) = nullptr) {
  const auto get = [reach](const Scenario& each) { return value_of(reach(each)); };
  const auto set = [reach](Scenario& each, double value) {
    auto& found = reach(each);
    found = std::remove_reference_t<decltype(found)>(value);
  };
  return {applies,
          {kind,
           "",
           key,
           range.low,
           range.high,
           range.typical,
           range.spread,
           range.logarithmic,
           range.common_share,
           get,
           set,
           {},
           {}},
          most};
}

const std::vector<TrainingFigure>& figures() {
  static const std::vector<TrainingFigure> kFigures = {
      figure(
          ProfileKind::Accelerator, "efficiency/sustained_clock_ratio",
          {0.5, 1.0, 0.88, 0.08, false}, always,
          [](auto& each) -> auto& { return each.cluster.accelerator.sustained_clock_ratio; }),
      figure(
          ProfileKind::Accelerator, "efficiency/sustained_fp8_clock_ratio",
          {0.5, 1.0, 0.88, 0.08, false},
          [](const Scenario& each) {
            return each.plan.precision == Precision::Fp8 &&
                   each.cluster.accelerator.sustained_fp8_clock_ratio > 0.0;
          },
          [](auto& each) -> auto& { return each.cluster.accelerator.sustained_fp8_clock_ratio; }),
      // The range before any step was seen: 8 % between the whiskers of a box plot, 5.4 deviations
      // of a normal distribution, among the V100 and MI60 of five clusters (Sinha et al., SC22,
      // arXiv 2208.11035), with cold and hot ones apart and below full power less.
      figure(
          ProfileKind::AllAccelerators, "efficiency/speed_variation_ratio",
          {0.0, 0.05, 0.015, 0.015, false},
          [](const Scenario& each) { return each.plan.world_size() > 1; },
          [](auto& each) -> auto& { return each.cluster.accelerator.speed_variation; }),
      // Relative to the stack's kernel in a benchmark.
      figure(
          ProfileKind::Stack, "fusion/attention_kernel_ratio", {0.3, 1.0, 1.0, 0.25, true},
          [](const Scenario& each) {
            return each.stack.fusion.flash_attention &&
                   !sim::has_asynchronous_matrix_units(each.cluster.accelerator);
          },
          [](auto& each) -> auto& { return each.stack.fusion.attention_kernel_ratio; },
          most_of_attention),
      figure(
          ProfileKind::Stack, "fusion/hopper_attention_kernel_ratio", {0.3, 1.0, 1.0, 0.25, true},
          [](const Scenario& each) {
            return each.stack.fusion.flash_attention &&
                   sim::has_asynchronous_matrix_units(each.cluster.accelerator);
          },
          [](auto& each) -> auto& { return each.stack.fusion.hopper_attention_kernel_ratio; },
          most_of_attention),
      figure(
          ProfileKind::Stack, "overlap/slowdown_ratio", {0.0, 0.5, 0.1, 0.1, false}, always,
          [](auto& each) -> auto& { return each.stack.overlap.slowdown; }),
      figure(
          ProfileKind::Stack, "overlap/collective_slowdown_ratio", {0.0, 1.0, 0.1, 0.1, false},
          always, [](auto& each) -> auto& { return each.stack.overlap.collective_slowdown; }),
      figure(
          ProfileKind::Stack, "overlap/tensor_parallel_share_ratio", {0.0, 1.0, 0.6, 0.2, false},
          [](const Scenario& each) {
            return each.stack.overlap.tensor_parallel && each.plan.tp > 1;
          },
          [](auto& each) -> auto& { return each.stack.overlap.tensor_parallel_share; }),
      // All stacks call the same library. What differs between them are the kernels beside it and
      // how far apart the ranks arrive.
      figure(
          ProfileKind::Stack, "communication/collective_ratio", {0.38, 1.0, 0.8, 0.3, true, 0.75},
          always, [](auto& each) -> auto& { return each.stack.communication.collective_ratio; }),
      figure(
          ProfileKind::Stack, "host/launch_s", {1e-6, 6e-5, 9e-6, 0.5, true}, always,
          [](auto& each) -> auto& { return each.stack.host.launch_time; })};
  return kFigures;
}

std::string profile_of(const TrainingFigure& figure, const Scenario& scenario) {
  switch (figure.parameter.kind) {
    case ProfileKind::Accelerator:
      return scenario.cluster.accelerator.name;
    case ProfileKind::AllAccelerators:
      return "all accelerators";
    case ProfileKind::Stack:
      return stack_that_states(scenario.stack.name, "/" + figure.parameter.key);
    case ProfileKind::OtherStacks:
      break;
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
      TrainingParameter& parameter = parameters.emplace_back(figure.parameter);
      parameter.profile = profile;
      if (figure.most) parameter.high = figure.most(scenarios[governed.front()]);
      if (parameter.kind == ProfileKind::AllAccelerators) {
        for (const std::size_t row : governed)
          parameter.profiles.insert(scenarios[row].cluster.accelerator.name);
      } else {
        parameter.profiles = {profile};
      }
      parameter.rows = std::move(governed);
    }
  }
  return parameters;
}

}  // namespace shardwright::validation
