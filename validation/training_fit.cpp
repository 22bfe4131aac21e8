#include "validation/training_fit.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "calibration/robust_minimiser.hpp"
#include "core/base/error.hpp"
#include "core/spec/profile_library.hpp"
#include "validation/validation.hpp"

namespace shardwright::validation {
namespace {

// Repeated measurements of one configuration differ by 1 to 7 %; below this a residual is noise.
constexpr double kNoise = 0.04;
// A source of n rows counts like kFullRows + sqrt(n - kFullRows) rows.
constexpr double kFullRows = 8.0;
// The step of the numerical derivative, as a share of a parameter's spread.
constexpr double kProbe = 0.15;
// A parameter is determined if the rows cut its deviation to this share of the prior spread.
constexpr double kDetermined = 0.6;
// A parameter is at its limit within this share of its physical range from an end of it.
constexpr double kAtLimit = 0.01;
// A prior counts like this many rows that are off by one deviation.
constexpr double kPriorWeight = 1.0;
// The passes of a fit: one with all parameters, three with those that are determined, one without
// one source after the other.
constexpr double kPasses = 5.0;
constexpr double kTwoSided95 = 1.96;
// Steps without a source, from the optimum of all rows.
constexpr int kRefits = 2;
// The relative gain of a step below which the fit stops.
constexpr double kLeastGain = 1e-3;

Eigen::VectorXd deviations(const Eigen::MatrixXd& curvature) {
  const Eigen::Index size = curvature.rows();
  return curvature.ldlt().solve(Eigen::MatrixXd::Identity(size, size)).diagonal().cwiseSqrt();
}

auto configuration(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  const ModelSpec& model = scenario.model;
  // Variants of a stack are patches on the profile that states the family.
  return std::tuple(
      scenario.cluster.accelerator.name, stack_that_states(scenario.stack.name, "/family"),
      count_parameters(model).total, model.layers, plan.seq_len, plan.world_size(), plan.tp,
      plan.pp, plan.cp, plan.ep, plan.vpp, plan.micro_batch, plan.global_batch, plan.precision,
      plan.recompute, plan.recompute_layers, plan.recompute_interval, plan.recompute_group,
      plan.sequence_parallel, plan.zero_stage, scenario.stack.fusion.flash_attention);
}

class Fit {
 public:
  Fit(const FitRows& rows, const TrainingFitOptions& options)
      : options_(options), rows_(rows.measurements), scenarios_(rows.scenarios) {
    if (rows_.empty())
      throw InputError("fit", {{"", "no measured step that can be simulated", "at least one"}});
    weigh_sources();
    parameters_ = training_parameters(scenarios_, options.least_rows);
    verdicts_.assign(parameters_.size(), calibration::FitVerdict::Fitted);
    const auto count = static_cast<Eigen::Index>(parameters_.size());
    start_.resize(count);
    prior_.resize(count);
    for (std::size_t j = 0; j < parameters_.size(); ++j) {
      const TrainingParameter& parameter = parameters_[j];
      start_[static_cast<Eigen::Index>(j)] =
          inner(parameter, std::clamp(parameter.get(scenarios_[parameter.rows.front()]),
                                      parameter.low, parameter.high));
      prior_[static_cast<Eigen::Index>(j)] = inner(parameter, parameter.typical);
    }
    point_ = start_;
    deviation_ = Eigen::VectorXd::Zero(count);
  }

  TrainingFit run() {
    TrainingFit fit;
    at_ = residuals(point_);
    fit.before = calibration::summarise_logarithms({at_.begin(), at_.end()});
    for (const double pass : {0.0, 1.0, 2.0}) {
      descend(pass);
      judge();
    }
    descend(3.0);
    fit.after = calibration::summarise_logarithms({at_.begin(), at_.end()});
    fit.held_out_errors = hold_out_each_source();
    std::vector<calibration::ErrorSample> samples;
    for (const HeldOutError& each : fit.held_out_errors) samples.push_back({each.error, false});
    fit.held_out = calibration::summarise(samples);
    for (std::size_t j = 0; j < parameters_.size(); ++j) {
      const auto index = static_cast<Eigen::Index>(j);
      const auto at = [&](double deviations) {
        return outer(parameters_[j], point_[index] + deviations * deviation_[index]);
      };
      fit.figures.push_back({parameters_[j], outer(parameters_[j], start_[index]), at(0.0),
                             at(-kTwoSided95), at(kTwoSided95), verdicts_[j]});
    }
    for (FittedFigure& each : figures_of_others()) fit.figures.push_back(std::move(each));
    return fit;
  }

 private:
  struct Step {
    Eigen::VectorXd point, deviation;
  };

  static double inner(const TrainingParameter& parameter, double value) {
    return parameter.logarithmic ? std::log(value) : value;
  }
  static double outer(const TrainingParameter& parameter, double inner_value) {
    const double value = parameter.logarithmic ? std::exp(inner_value) : inner_value;
    return std::clamp(value, parameter.low, parameter.high);
  }
  bool is_free(std::size_t j) const { return verdicts_[j] == calibration::FitVerdict::Fitted; }
  bool is_shared(std::size_t j) const { return parameters_[j].common_share > 0.0; }

  bool goes_on(double share, const std::string& text) const {
    return !options_.progress || options_.progress(share, text);
  }

  void weigh_sources() {
    std::map<std::string, double> sizes;
    for (const Measurement& row : rows_) sizes[row.source.title] += 1.0;
    for (const Measurement& row : rows_) {
      const double n = sizes[row.source.title];
      weights_.push_back(n <= kFullRows ? 1.0 : (kFullRows + std::sqrt(n - kFullRows)) / n);
    }
  }

  Scenario with(std::size_t row, const Eigen::VectorXd& point) const {
    Scenario scenario = scenarios_[row];
    for (std::size_t j = 0; j < parameters_.size(); ++j) {
      const TrainingParameter& parameter = parameters_[j];
      if (std::binary_search(parameter.rows.begin(), parameter.rows.end(), row))
        parameter.set(scenario, outer(parameter, point[static_cast<Eigen::Index>(j)]));
    }
    return scenario;
  }

  double residual(std::size_t row, const Scenario& scenario) const {
    return std::log1p(compare_with(rows_[row], scenario).error);
  }

  Eigen::VectorXd residuals(const Eigen::VectorXd& point) const {
    Eigen::VectorXd result(static_cast<Eigen::Index>(rows_.size()));
    tbb::parallel_for(std::size_t{0}, rows_.size(), [&](std::size_t row) {
      result[static_cast<Eigen::Index>(row)] = residual(row, with(row, point));
    });
    return result;
  }

  // The derivatives by row and parameter; `at` are the residuals at the point itself.
  Eigen::MatrixXd derivatives(const Eigen::VectorXd& point, const Eigen::VectorXd& at) const {
    Eigen::MatrixXd jacobian =
        Eigen::MatrixXd::Zero(at.size(), static_cast<Eigen::Index>(parameters_.size()));
    tbb::parallel_for(std::size_t{0}, parameters_.size(), [&](std::size_t j) {
      const TrainingParameter& parameter = parameters_[j];
      if (!is_free(j)) return;
      const auto column = static_cast<Eigen::Index>(j);
      double step = kProbe * parameter.spread;
      if (point[column] + step > inner(parameter, parameter.high)) step = -step;
      Eigen::VectorXd probe = point;
      probe[column] += step;
      tbb::parallel_for(std::size_t{0}, parameter.rows.size(), [&](std::size_t i) {
        const std::size_t row = parameter.rows[i];
        const auto index = static_cast<Eigen::Index>(row);
        jacobian(index, column) = (residual(row, with(row, probe)) - at[index]) / step;
      });
    });
    return jacobian;
  }

  Eigen::VectorXd row_weights(const Eigen::VectorXd& residual) const {
    Eigen::VectorXd weights(residual.size());
    for (Eigen::Index i = 0; i < residual.size(); ++i) {
      weights[i] = weights_[static_cast<std::size_t>(i)] /
                   (kNoise * std::max(kNoise, std::abs(residual[i])));
    }
    return weights;
  }

  Step solve(const Eigen::MatrixXd& jacobian, const Eigen::VectorXd& residual,
             const Eigen::VectorXd& weights, const Eigen::VectorXd& point) const {
    const calibration::NormalEquations equations =
        calibration::normal_equations(problem(), jacobian, residual, weights, point);
    return {point - equations.matrix.ldlt().solve(equations.gradient),
            deviations(equations.matrix)};
  }

  Eigen::VectorXd clamped(const Eigen::VectorXd& point) const {
    Eigen::VectorXd result = point;
    for (Eigen::Index j = 0; j < point.size(); ++j) {
      const auto index = static_cast<std::size_t>(j);
      result[j] = is_free(index) ? inner(parameters_[index], outer(parameters_[index], point[j]))
                                 : start_[j];
    }
    return result;
  }

  double loss(const Eigen::VectorXd& residual) const {
    double sum = 0.0;
    for (Eigen::Index i = 0; i < residual.size(); ++i) {
      const double size = std::abs(residual[i]) / kNoise;
      sum += weights_[static_cast<std::size_t>(i)] * (size < 1.0 ? size * size : 2.0 * size - 1.0);
    }
    return sum;
  }

  double variance(std::size_t j) const { return parameters_[j].spread * parameters_[j].spread; }

  // Figures that keep the value of their profile say nothing about those of other profiles.
  Eigen::MatrixXd prior_covariance() const {
    const auto size = static_cast<Eigen::Index>(parameters_.size());
    Eigen::MatrixXd covariance = Eigen::MatrixXd::Zero(size, size);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      for (std::size_t j = 0; j < parameters_.size(); ++j) {
        const bool related = is_free(i) && is_free(j) && parameters_[i].key == parameters_[j].key;
        const double share = i == j ? 1.0 : related ? parameters_[i].common_share : 0.0;
        covariance(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) =
            share * variance(i);
      }
    }
    return covariance;
  }

  // The priors of figures that profiles have in common, given the fitted profiles.
  std::vector<FittedFigure> figures_of_others() const {
    Scenario other;
    other.stack = load_stack("generic");
    const Eigen::MatrixXd known = prior_covariance().inverse();
    std::map<std::string, std::size_t> kinds;
    for (std::size_t j = 0; j < parameters_.size(); ++j)
      if (is_free(j) && is_shared(j)) kinds.try_emplace(parameters_[j].key, j);
    std::vector<FittedFigure> figures;
    for (const auto& [key, first] : kinds) {
      Eigen::VectorXd common = Eigen::VectorXd::Zero(point_.size());
      for (std::size_t j = 0; j < parameters_.size(); ++j) {
        if (is_free(j) && parameters_[j].key == key)
          common[static_cast<Eigen::Index>(j)] = parameters_[j].common_share * variance(j);
      }
      const double mean =
          prior_[static_cast<Eigen::Index>(first)] + common.dot(known * (point_ - prior_));
      const double deviation = std::sqrt(variance(first) - common.dot(known * common));
      TrainingParameter parameter = parameters_[first];
      parameter.kind = ProfileKind::OtherStacks;
      parameter.profile = "other stacks";
      parameter.rows.clear();
      parameter.profiles.clear();
      const auto at = [&](double deviations) {
        return outer(parameter, mean + deviations * deviation);
      };
      figures.push_back({parameter, parameter.get(other), at(0.0), at(-kTwoSided95),
                         at(kTwoSided95), calibration::FitVerdict::Fitted});
    }
    return figures;
  }

  // Parameters that are not free have no room between their bounds.
  calibration::RobustProblem problem() const {
    calibration::RobustProblem problem;
    problem.least = problem.most = start_;
    problem.prior = prior_;
    problem.precision = kPriorWeight * prior_covariance().inverse();
    for (std::size_t j = 0; j < parameters_.size(); ++j) {
      const auto index = static_cast<Eigen::Index>(j);
      if (!is_free(j)) continue;
      problem.least[index] = inner(parameters_[j], parameters_[j].low);
      problem.most[index] = inner(parameters_[j], parameters_[j].high);
    }
    problem.residuals = [this](const Eigen::VectorXd& point) { return residuals(point); };
    problem.derivatives = [this](const Eigen::VectorXd& point, const Eigen::VectorXd& at) {
      return derivatives(point, at);
    };
    problem.loss = [this](const Eigen::VectorXd& residual) { return loss(residual); };
    problem.weights = [this](const Eigen::VectorXd& residual) { return row_weights(residual); };
    return problem;
  }

  void descend(double pass) {
    // Residuals are dear: few steps, hardly damped at first, and few tries for each.
    calibration::MinimiserOptions options{.most_iterations = options_.iterations,
                                          .enough = kLeastGain,
                                          .first_damping = 1e-9,
                                          .retry_damping = 0.25,
                                          .most_damping = 16.0,
                                          .goes_on = {}};
    options.goes_on = [&](int iteration, double cost) {
      const double done = (static_cast<double>(iteration) / options_.iterations + pass) / kPasses;
      return goes_on(done, fmt::format("iteration {}, cost {:.1f}", iteration + 1, cost));
    };
    const calibration::Minimum found = calibration::minimise(problem(), point_, at_, options);
    point_ = found.point;
    at_ = found.residuals;
    if (found.curvature.size() > 0) deviation_ = deviations(found.curvature);
  }

  void judge() {
    for (std::size_t j = 0; j < parameters_.size(); ++j) {
      if (!is_free(j)) continue;
      const TrainingParameter& parameter = parameters_[j];
      const auto index = static_cast<Eigen::Index>(j);
      const double low = inner(parameter, parameter.low), high = inner(parameter, parameter.high);
      const double place = (std::clamp(point_[index], low, high) - low) / (high - low);
      if (std::min(place, 1.0 - place) < kAtLimit)
        verdicts_[j] = calibration::FitVerdict::PushedToLimit;
      else if (!is_shared(j) && deviation_[index] >= kDetermined * parameter.spread)
        verdicts_[j] = calibration::FitVerdict::Undetermined;
    }
    point_ = clamped(point_);
    at_ = residuals(point_);
  }

  // The optimum of the rows that are not left out, near that of all rows. A parameter that neither
  // these rows nor other profiles determine is at its prior.
  Eigen::VectorXd refitted(const Eigen::MatrixXd& jacobian,
                           const std::vector<bool>& left_out) const {
    const auto weights_at = [&](const Eigen::VectorXd& residual) {
      Eigen::VectorXd weights = row_weights(residual);
      for (std::size_t row = 0; row < left_out.size(); ++row)
        if (left_out[row]) weights[static_cast<Eigen::Index>(row)] = 0.0;
      return weights;
    };
    const Eigen::VectorXd deviation = solve(jacobian, at_, weights_at(at_), point_).deviation;
    Eigen::MatrixXd moved = jacobian;
    Eigen::VectorXd point = point_;
    for (Eigen::Index j = 0; j < point.size(); ++j) {
      const auto index = static_cast<std::size_t>(j);
      if (!is_free(index) || is_shared(index) ||
          deviation[j] < kDetermined * parameters_[index].spread)
        continue;
      moved.col(j).setZero();
      point[j] = prior_[j];
    }
    Eigen::VectorXd at = point == point_ ? at_ : residuals(point);
    for (int refit = 1; refit <= kRefits; ++refit) {
      point = clamped(solve(moved, at, weights_at(at), point).point);
      if (refit < kRefits) at = residuals(point);
    }
    return point;
  }

  // Leaves out the rows of one source at a time, and the rows of other sources that repeat one of
  // its configurations.
  std::vector<HeldOutError> hold_out_each_source() const {
    const std::vector<std::size_t> configuration = configuration_numbers(scenarios_);
    std::map<std::string, std::set<std::size_t>> sources;
    for (std::size_t row = 0; row < rows_.size(); ++row)
      sources[rows_[row].source.title].insert(configuration[row]);
    const Eigen::MatrixXd jacobian = derivatives(point_, at_);
    std::vector<HeldOutError> errors(rows_.size());
    double done = 0.0;
    for (const auto& [source, measured] : sources) {
      std::vector<bool> left_out(rows_.size());
      for (std::size_t row = 0; row < left_out.size(); ++row)
        left_out[row] = measured.contains(configuration[row]);
      const Eigen::VectorXd point = refitted(jacobian, left_out);
      tbb::parallel_for(std::size_t{0}, rows_.size(), [&, &name = source](std::size_t row) {
        const Measurement& held = rows_[row];
        if (held.source.title != name) return;
        errors[row] = {held.id, name, std::expm1(residual(row, with(row, point)))};
      });
      done += 1.0 / static_cast<double>(sources.size());
      if (!goes_on((kPasses - 1.0 + done) / kPasses, "leaving out one source after the other"))
        break;
    }
    // A fit that was stopped has left sources out.
    std::erase_if(errors, [](const HeldOutError& each) { return each.id.empty(); });
    return errors;
  }

  const TrainingFitOptions& options_;
  const std::vector<Measurement>& rows_;
  const std::vector<Scenario>& scenarios_;
  // The weight of each row.
  std::vector<double> weights_;
  std::vector<TrainingParameter> parameters_;
  // Verdicts so far. Only parameters that count as fitted are moved.
  std::vector<calibration::FitVerdict> verdicts_;
  Eigen::VectorXd start_, prior_, point_, deviation_;
  // Residuals at point_.
  Eigen::VectorXd at_;
};

}  // namespace

std::vector<std::size_t> configuration_numbers(const std::vector<Scenario>& scenarios) {
  std::map<decltype(configuration(Scenario())), std::size_t> known;
  std::vector<std::size_t> numbers;
  for (const Scenario& scenario : scenarios)
    numbers.push_back(known.try_emplace(configuration(scenario), known.size()).first->second);
  return numbers;
}

FitRows rows_to_fit(const std::vector<Measurement>& measurements) {
  FitRows rows;
  for (const Measurement& each : measurements) {
    if (each.figure && each.scenario && each.outcome != Outcome::OutOfMemory)
      rows.measurements.push_back(each);
  }
  rows.scenarios.resize(rows.measurements.size());
  tbb::parallel_for(std::size_t{0}, rows.scenarios.size(), [&](std::size_t row) {
    rows.scenarios[row] = resolved_scenario(rows.measurements[row]);
  });
  return rows;
}

TrainingFit fit_training(const FitRows& rows, const TrainingFitOptions& options) {
  return Fit(rows, options).run();
}

}  // namespace shardwright::validation
