#include "validation/prediction_errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/data_directory.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/pools.hpp"
#include "validation/validated_ground.hpp"

namespace shardwright::validation {
namespace {

// The limits of measured over predicted step time, and the number of published runs behind them.
struct MeasuredRatios {
  double low = 1.0, high = 1.0;
  std::int64_t runs = 0;
};

struct PublishedErrors {
  // By class_text(), or by the name of the ground for all of its classes.
  std::map<std::string, MeasuredRatios> steps;
  // Measured over predicted peak memory, in ascending order.
  std::vector<double> memory;
};

// A probability is compared with ratios that were rounded when they were written.
constexpr double kRounding = 1e-9;

PublishedErrors read_errors() {
  const auto file = data_directory() / "measurements" / "prediction_errors.json";
  const nlohmann::json document = read_json_file(file);
  ProblemList problems(file.string());
  ObjectReader reader(document, "", problems);
  PublishedErrors errors;
  for (ObjectReader& object : reader.objects("step_time")) {
    const std::string name = object.name("class");
    errors.steps[name] = {object.number("low"), object.number("high"), object.integer("runs")};
    object.refuse_unknown_keys();
  }
  errors.memory = reader.numbers("memory");
  for (const PredictionGround ground : enumerators<PredictionGround>()) {
    if (!errors.steps.contains(name_of(ground)))
      problems.add("step_time", "no such class", fmt::format("\"{}\"", name_of(ground)));
  }
  problems.throw_if_any();
  std::sort(errors.memory.begin(), errors.memory.end());
  return errors;
}

const PublishedErrors& published_errors() {
  static const PublishedErrors kErrors = read_errors();
  return kErrors;
}

const MeasuredRatios& ratios(PredictionClass of) {
  const auto& steps = published_errors().steps;
  const auto found = steps.find(class_text(of));
  return found != steps.end() ? found->second : steps.at(name_of(of.ground));
}

RunWorkload workload_of(const Scenario& scenario) {
  if (scenario.model.moe) return RunWorkload::Experts;
  return scenario.plan.zero_stage == 3 ? RunWorkload::Sharded : RunWorkload::Dense;
}

// True for the accelerators of which most steps were published: NVIDIA's for data centres, from
// V100 on.
bool is_well_measured(const AcceleratorSpec& accelerator) {
  using enum Architecture;
  constexpr std::array kArchitectures = {Volta, Ampere, Hopper, Blackwell};
  return std::find(kArchitectures.begin(), kArchitectures.end(), accelerator.architecture) !=
         kArchitectures.end();
}

}  // namespace

std::string class_text(PredictionClass of) {
  return fmt::format("{}, {}", name_of(of.ground), name_of(of.workload));
}

std::optional<PredictionClass> class_of(const Scenario& scenario, const std::string& except) {
  if (!has_published_errors(scenario.stack) || names_pools(scenario.plan)) return std::nullopt;
  PredictionClass found{PredictionGround::StatedPlan, workload_of(scenario)};
  if (scenario.stack.generic || !is_well_measured(scenario.cluster.accelerator)) {
    found.ground = PredictionGround::GenericStack;
  } else if (!ValidatedGround(scenario, except).covers(scenario.plan)) {
    found.ground = PredictionGround::OutsidePlan;
  }
  return found;
}

std::pair<double, double> prediction_interval(double predicted, bool is_rate, PredictionClass of) {
  const MeasuredRatios& measured = ratios(of);
  if (is_rate) return {predicted / measured.high, predicted / measured.low};
  return {predicted * measured.low, predicted * measured.high};
}

std::optional<StepInterval> step_interval(Seconds predicted, std::optional<PredictionClass> of) {
  if (!of) return std::nullopt;
  const auto [low, high] = prediction_interval(predicted.value(), false, *of);
  return StepInterval{Seconds(low), Seconds(high), ratios(*of).runs};
}

double fit_probability(Bytes predicted, Bytes memory) {
  const std::vector<double>& known = published_errors().memory;
  const auto beyond =
      std::upper_bound(known.begin(), known.end(), memory / predicted * (1.0 + kRounding));
  return static_cast<double>(beyond - known.begin()) / static_cast<double>(known.size() + 1);
}

double memory_share(double probability) {
  const std::vector<double>& known = published_errors().memory;
  const auto most = static_cast<double>(known.size() + 1);
  const auto needed = static_cast<std::size_t>(std::ceil(probability * most - kRounding));
  if (needed > known.size()) {
    throw InputError("memory", {{"fit_probability", format_number(100.0 * probability, 6) + " %",
                                 fmt::format("at most {} %, for which {} published runs suffice",
                                             format_percent(1.0 - 1.0 / most), known.size())}});
  }
  return 1.0 / known[std::max<std::size_t>(needed, 1) - 1];
}

bool has_published_errors(const StackSpec& stack) {
  return stack.family != "shardwright";
}

std::int64_t memory_runs() {
  return static_cast<std::int64_t>(published_errors().memory.size());
}

Confidence confidence_of(const Scenario& scenario, Seconds step, Bytes peak_memory) {
  return confidence_of(scenario, class_of(scenario), step, peak_memory);
}

Confidence confidence_of(const Scenario& scenario, std::optional<PredictionClass> of, Seconds step,
                         Bytes peak_memory) {
  if (!of) return {};
  const ValidatedGround ground(scenario);
  return {of, step_interval(step, of),
          fit_probability(peak_memory, scenario.cluster.accelerator.memory),
          ground.gap(scenario.plan), ground.runs(scenario.plan)};
}

std::string ground_text(const std::string& plan, const Confidence& confidence) {
  if (confidence.gap.empty()) {
    return fmt::format("{} lies inside validated ground: there are {} of its kind.", plan,
                       format_plural(confidence.alike, "published run"));
  }
  return fmt::format("{} lies outside validated ground: {}.", plan, confidence.gap);
}

}  // namespace shardwright::validation
