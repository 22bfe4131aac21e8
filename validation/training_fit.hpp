// Fits figures of accelerators and stacks to measured training steps.
//
// The residual of a row is the logarithm of predicted over measured step time. The fit minimises
//   sum_rows  w_row rho(residual / noise)  +  sum_parameters  ((x - typical) / spread)^2
// with numerical derivatives (calibration/robust_minimiser.hpp); rho is the absolute value beyond
// the noise, so that rows which the model cannot explain do not bend the parameters. Rows of a
// large source count less each, so that no source outvotes all others.
// A parameter whose deviation stays close to its prior `spread` is not determined by the rows, and
// one that they push to an end of its physical range answers for something else: both keep the
// figure of their profile and are reported as such, and the others are fitted anew.
//
// Held-out errors: the rows of each source are predicted by a fit to all others but those that
// repeat one of its configurations (configuration_numbers()), two steps from the optimum of all
// rows with its derivatives. A figure that is fitted to all rows, but that the others do not
// determine, is at its prior there.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "calibration/error_statistics.hpp"
#include "calibration/least_squares.hpp"
#include "validation/measurement.hpp"

namespace shardwright::validation {

// The profiles that a figure stands in. AllAccelerators: one figure that all of them share.
// OtherStacks: what is expected of a stack that no row uses.
enum class ProfileKind { Accelerator, AllAccelerators, Stack, OtherStacks };

// One figure of one profile, or of all accelerators. `get` and `set` act on a scenario that the
// profile is part of.
struct TrainingParameter {
  ProfileKind kind = ProfileKind::Accelerator;
  // "h100-sxm", "megatron-core", "all accelerators". A figure of a variant of a stack belongs to
  // the profile that states it.
  std::string profile;
  // The place of the figure in the profile's file: "host/launch_s".
  std::string key;
  // The physical range.
  double low = 0.0, high = 0.0;
  // The value that is expected before any row is seen.
  double typical = 0.0;
  // The standard deviation of plausible values around that.
  double spread = 0.0;
  // Steps and `spread` are relative.
  bool logarithmic = false;
  // The share of the prior's variance that all profiles with this figure have in common. Where it
  // is not 0, the other profiles determine a figure that its own rows leave open.
  double common_share = 0.0;
  std::function<double(const Scenario&)> get;
  std::function<void(Scenario&, double)> set;
  // Indices of the scenarios that it governs.
  std::vector<std::size_t> rows;
  // The profiles of those scenarios that have the figure: `profile`, or each of their accelerators.
  std::set<std::string> profiles;
};

// Returns a parameter for each figure of each profile that at least `least_rows` of the scenarios
// use.
std::vector<TrainingParameter> training_parameters(const std::vector<Scenario>& scenarios,
                                                   std::size_t least_rows);

struct FittedFigure {
  TrainingParameter parameter;
  // The figure of the profile, or for OtherStacks of the stack `generic`, and the fitted one. They
  // are the same unless the verdict is Fitted.
  double before = 0.0, after = 0.0;
  // The 95 % confidence interval.
  double low = 0.0, high = 0.0;
  calibration::FitVerdict verdict = calibration::FitVerdict::Undetermined;

  bool is_fitted() const { return verdict == calibration::FitVerdict::Fitted; }
};

struct HeldOutError {
  std::string id, source;
  // A ratio, of a fit that has seen no row of this source.
  double error = 0.0;
};

struct TrainingFit {
  std::vector<FittedFigure> figures;
  // Errors of the step time.
  calibration::ErrorSummary before, after, held_out;
  std::vector<HeldOutError> held_out_errors;
};

// Measured steps and the scenarios that predict them, in the same order.
struct FitRows {
  std::vector<Measurement> measurements;
  // The open fields of their plans are chosen.
  std::vector<Scenario> scenarios;
};

// Leaves out the rows that cannot be simulated or have no step time, and chooses the open fields of
// the others, which searches: once for all fits. Throws InputError as resolved_scenario() does.
FitRows rows_to_fit(const std::vector<Measurement>& measurements);

// Returns a number for each scenario, which is the same for scenarios of one model, plan, stack and
// number of accelerators of one kind, whatever they are called. Variants of a stack count as one:
// later releases of a table measure most of the earlier ones' configurations again.
std::vector<std::size_t> configuration_numbers(const std::vector<Scenario>& scenarios);

struct TrainingFitOptions {
  // Rows that a profile needs to have its figures fitted.
  std::size_t least_rows = 6;
  int iterations = 4;
  // Called with the share that is done and a line on what goes on. Where it returns false, the fit
  // stops and returns its results so far.
  std::function<bool(double, const std::string&)> progress;
};

// Throws InputError if there are no rows.
TrainingFit fit_training(const FitRows& rows, const TrainingFitOptions& options = {});

}  // namespace shardwright::validation
