// The expected errors of predictions, by the errors on published runs.
//
// measurements/prediction_errors.json holds the errors; tools/write_validation_page writes it from
// the shipped measurements, each source predicted without itself: by figures fitted to the others,
// and inside or outside the ground that the others cover (validated_ground.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/base/enum_names.hpp"
#include "core/base/units.hpp"
#include "core/spec/scenario.hpp"

namespace shardwright::validation {

// The knowledge that a prediction rests on.
enum class PredictionGround : std::uint8_t {
  // Published runs cover the plan, and all of it is stated.
  StatedPlan,
  // A part of the plan is inferred, or was chosen as tuned.
  InferredPlan,
  // No published run covers the plan.
  OutsidePlan,
  // The software has no profile of its own, or no step of such an accelerator was published.
  GenericStack,
};
constexpr auto enum_names(PredictionGround) {
  return std::array{"stated plan", "inferred plan", "outside validated ground", "generic stack"};
}

// The kinds of training whose errors differ.
enum class RunWorkload : std::uint8_t {
  Dense,
  // Dense, with parameters sharded over the data-parallel ranks (ZeRO-3, FSDP).
  Sharded,
  Experts,
};
constexpr auto enum_names(RunWorkload) {
  return std::array{"dense", "sharded", "experts"};
}

// Predictions of one class have errors alike.
struct PredictionClass {
  PredictionGround ground = PredictionGround::StatedPlan;
  RunWorkload workload = RunWorkload::Dense;

  bool operator==(const PredictionClass&) const = default;
};

// "stated plan, dense".
std::string class_text(PredictionClass of);

// The class of a prediction for a stated plan. There is none where no measurement of the stack was
// published, as for Shardwright's own executor, which is calibrated on its runs, and for plans on
// pools, of which too few measurements were published. Leaves out what the source `except`
// published.
std::optional<PredictionClass> class_of(const Scenario& scenario, const std::string& except = "");

// Returns the limits between which 80 % of measurements lie for a prediction of the event level:
// the conformal quantiles of measured over predicted step time in the class (Vovk, Gammerman and
// Shafer, Algorithmic Learning in a Random World, 2005, chapter 2), or in all classes of its ground
// if it has fewer than 15 runs. The limits of a rate are the inverse ones.
std::pair<double, double> prediction_interval(double predicted, bool is_rate, PredictionClass of);

// The interval of a step time.
struct StepInterval {
  Seconds low, high;
  // The number of published runs whose errors the interval comes from.
  std::int64_t runs = 0;
};
// Returns nothing without a class.
std::optional<StepInterval> step_interval(Seconds predicted, std::optional<PredictionClass> of);

// The probability that a plan fits into `memory` if its predicted peak is `predicted`: the share
// of published runs whose peak exceeded its prediction by less, one more run counted against it.
double fit_probability(Bytes predicted, Bytes memory);

// The probability with which plans are to fit unless the user says otherwise.
inline constexpr double kFitProbability = 0.95;

// The share of the memory that a predicted peak may fill to fit with this probability. Throws
// InputError if there are too few runs to tell.
double memory_share(double probability);

// True if measurements of such a stack were published, whose errors tell how sure a prediction is.
bool has_published_errors(const StackSpec& stack);

// The number of published peaks behind these probabilities.
std::int64_t memory_runs();

// The confidence in a simulated step.
struct Confidence {
  // None if no measurement of the stack was published; the other members are then empty, too.
  std::optional<PredictionClass> prediction_class;
  std::optional<StepInterval> step;
  // The probability that the step fits into the memory of an accelerator.
  std::optional<double> fit_probability;
  // Why the plan lies outside validated ground; empty if it lies inside.
  std::string gap;
  // The number of published runs of the plan's kind.
  std::int64_t alike = 0;
};

Confidence confidence_of(const Scenario& scenario, Seconds step, Bytes peak_memory);
// The same for a prediction of this class.
Confidence confidence_of(const Scenario& scenario, std::optional<PredictionClass> of, Seconds step,
                         Bytes peak_memory);

// The sentence that says whether published runs cover the plan that `plan` names: "Plan 1 lies
// inside …".
std::string ground_text(const std::string& plan, const Confidence& confidence);

}  // namespace shardwright::validation
