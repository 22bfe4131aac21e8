#include "calibration/least_squares.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <optional>

#include "calibration/robust_minimiser.hpp"

namespace shardwright::calibration {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

// The scale s of the loss: residuals below it count by their squares.
constexpr double kScale = 0.08;
// The step of the numeric derivatives, in logarithms.
constexpr double kDifference = 2e-3;
// Two parameters that are more correlated are not told apart.
constexpr double kMostCorrelation = 0.97;
// The variance of a residual where there are no more rows than parameters.
constexpr double kUnknownVariance = 1e9;
// A parameter is at a limit if its logarithm is this close to it.
constexpr double kNearLimit = 1e-4;

// Two-sided 95 % quantile of Student's t distribution.
double quantile_of(double degrees_of_freedom) {
  // Without long double, whose functions would be compiled too.
  using Policy = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
  return boost::math::quantile(
      boost::math::students_t_distribution<double, Policy>(degrees_of_freedom), 0.975);
}

VectorXd to_eigen(const std::vector<double>& values) {
  return VectorXd::Map(values.data(), static_cast<Eigen::Index>(values.size()));
}

double loss(const VectorXd& residuals) {
  return (((residuals / kScale).array().square() + 1.0).sqrt() - 1.0).sum();
}

VectorXd weights_of(const VectorXd& residuals) {
  return (((residuals / kScale).array().square() + 1.0).sqrt().inverse()).matrix();
}

// The parameters that are free in this round.
class FitProblem {
 public:
  FitProblem(const std::vector<FitParameter>& parameters, const Residuals& residuals)
      : parameters_(parameters), residuals_(residuals) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      free_.push_back(i);
      held_.push_back(parameters[i].value);
    }
  }

  Eigen::Index size() const { return static_cast<Eigen::Index>(free_.size()); }
  const std::vector<std::size_t>& free() const { return free_; }
  const FitParameter& parameter(Eigen::Index i) const {
    return parameters_[free_[static_cast<std::size_t>(i)]];
  }
  void hold(std::size_t parameter, double value) {
    std::erase(free_, parameter);
    held_[parameter] = value;
  }

  VectorXd start() const {
    VectorXd x(size());
    for (Eigen::Index i = 0; i < size(); ++i) {
      const FitParameter& each = parameter(i);
      x[i] = std::log(std::clamp(each.value, each.least, each.most));
    }
    return x;
  }

  // The problem in the logarithms of the free parameters. This outlives it.
  RobustProblem robust() const {
    RobustProblem problem;
    problem.least.resize(size());
    problem.most.resize(size());
    for (Eigen::Index i = 0; i < size(); ++i) {
      problem.least[i] = std::log(parameter(i).least);
      problem.most[i] = std::log(parameter(i).most);
    }
    problem.residuals = [this](const VectorXd& x) { return residuals(x); };
    problem.derivatives = [this](const VectorXd& x, const VectorXd& at_x) {
      return jacobian(x, at_x);
    };
    problem.loss = loss;
    problem.weights = weights_of;
    return problem;
  }

  bool at_limit(const VectorXd& x, Eigen::Index i) const {
    return x[i] - std::log(parameter(i).least) < kNearLimit ||
           std::log(parameter(i).most) - x[i] < kNearLimit;
  }

  // The one that is near.
  double limit_at(const VectorXd& x, Eigen::Index i) const {
    const FitParameter& each = parameter(i);
    return x[i] - std::log(each.least) < kNearLimit ? each.least : each.most;
  }

  std::vector<double> values(const VectorXd& x) const {
    std::vector<double> all = held_;
    for (Eigen::Index i = 0; i < size(); ++i)
      all[free_[static_cast<std::size_t>(i)]] = std::exp(x[i]);
    return all;
  }

  VectorXd residuals(const VectorXd& x) const { return to_eigen(residuals_(values(x))); }

  // Steps away from a limit where one is near.
  MatrixXd jacobian(const VectorXd& x, const VectorXd& at_x) const {
    MatrixXd jacobian(at_x.size(), size());
    for (Eigen::Index i = 0; i < size(); ++i) {
      const bool down = x[i] + kDifference > std::log(parameter(i).most);
      VectorXd moved = x;
      moved[i] += down ? -kDifference : kDifference;
      jacobian.col(i) = (residuals(moved) - at_x) / (moved[i] - x[i]);
    }
    return jacobian;
  }

 private:
  const std::vector<FitParameter>& parameters_;
  const Residuals& residuals_;
  std::vector<std::size_t> free_;
  // Values of the others, by parameter.
  std::vector<double> held_;
};

VectorXd minimise(const FitProblem& problem) {
  const VectorXd start = problem.start();
  return minimise(problem.robust(), start, problem.residuals(start)).point;
}

// A fit of the free parameters' logarithms.
struct Round {
  VectorXd x;
  double loss = 0.0;
  // The variance of a residual.
  double variance = 0.0;
  // Half of the 95 % interval, over the standard error.
  double quantile = 0.0;
  MatrixXd covariance;
  // The step that the data ask for from here, whatever the limits.
  VectorXd beyond;
};

Round solve(const FitProblem& problem) {
  Round round;
  round.x = minimise(problem);
  const VectorXd residuals = problem.residuals(round.x);
  round.loss = loss(residuals);
  const VectorXd weights = weights_of(residuals);
  NormalEquations equations = normal_equations(
      problem.robust(), problem.jacobian(round.x, residuals), residuals, weights, round.x);
  const auto degrees = static_cast<double>(residuals.size() - problem.size());
  round.variance = degrees > 0.0 ? (weights.array() * residuals.array().square()).sum() / degrees
                                 : kUnknownVariance;
  round.quantile = quantile_of(std::max(1.0, degrees));
  // A parameter that no row feels has no error at all; a little of its own keeps the others'
  // finite.
  for (Eigen::Index i = 0; i < problem.size(); ++i) equations.matrix(i, i) += 1e-9;
  const auto factors = equations.matrix.ldlt();
  round.covariance =
      factors.solve(MatrixXd::Identity(problem.size(), problem.size())) * round.variance;
  round.beyond = factors.solve(-equations.gradient);
  return round;
}

// Half of the 95 % interval, in logarithms.
double half_width(const Round& round, Eigen::Index i) {
  return round.quantile * std::sqrt(std::max(0.0, round.covariance(i, i)));
}

// The widest that half of the interval may be, in logarithms.
double widest(const FitProblem& problem, const Round& round, Eigen::Index i) {
  const FitParameter& parameter = problem.parameter(i);
  const double moved = std::abs(round.x[i] - problem.start()[i]);
  const bool contradicted = moved > half_width(round, i);
  return std::log(contradicted ? std::max(parameter.widest, parameter.widest_against)
                               : parameter.widest);
}

bool goes_with_an_earlier_one(const Round& round, Eigen::Index i) {
  for (Eigen::Index earlier = 0; earlier < i; ++earlier) {
    const double both = round.covariance(i, i) * round.covariance(earlier, earlier);
    if (std::abs(round.covariance(i, earlier)) > kMostCorrelation * std::sqrt(both)) return true;
  }
  return false;
}

// True at a limit that the data would take the parameter further beyond than its interval reaches.
bool is_pushed_beyond(const FitProblem& problem, const Round& round, Eigen::Index i) {
  if (!problem.at_limit(round.x, i)) return false;
  const bool at_most = problem.limit_at(round.x, i) == problem.parameter(i).most;
  const double outwards = at_most ? round.beyond[i] : -round.beyond[i];
  return outwards > half_width(round, i) + kNearLimit;
}

// True if the data speak for the limit that a parameter has reached against its first value: not
// where it went there because they hardly feel it.
bool is_pushed_to_limit(const FitProblem& problem, const Round& round, Eigen::Index i) {
  if (!problem.at_limit(round.x, i)) return false;
  if (is_pushed_beyond(problem, round, i)) return true;
  FitProblem without = problem;
  without.hold(problem.free()[static_cast<std::size_t>(i)], problem.parameter(i).value);
  const double worse = loss(without.residuals(minimise(without))) - round.loss;
  return 2.0 * worse * kScale * kScale > round.quantile * round.quantile * round.variance;
}

// The free parameter that the data say least about, if they do not determine it. What they push
// beyond a limit comes last: it may make up for another that they do not determine.
std::optional<Eigen::Index> least_determined(const FitProblem& problem, const Round& round) {
  std::optional<Eigen::Index> worst;
  for (Eigen::Index i = 0; i < problem.size(); ++i) {
    if (half_width(round, i) <= widest(problem, round, i)) continue;
    if (!worst || half_width(round, i) > half_width(round, *worst)) worst = i;
  }
  for (Eigen::Index i = 0; i < problem.size() && !worst; ++i)
    if (goes_with_an_earlier_one(round, i)) worst = i;
  for (Eigen::Index i = 0; i < problem.size() && !worst; ++i)
    if (is_pushed_beyond(problem, round, i)) worst = i;
  return worst;
}

void report(const FitProblem& problem, const Round& round, FitResult& result) {
  for (Eigen::Index i = 0; i < problem.size(); ++i) {
    FittedParameter& each = result.parameters[problem.free()[static_cast<std::size_t>(i)]];
    each.value = std::exp(round.x[i]);
    each.verdict = problem.at_limit(round.x, i) ? FitVerdict::AtLimit : FitVerdict::Fitted;
    each.low = std::max(problem.parameter(i).least, each.value * std::exp(-half_width(round, i)));
    each.high = std::min(problem.parameter(i).most, each.value * std::exp(half_width(round, i)));
  }
}

}  // namespace

bool is_determined(FitVerdict verdict) {
  return verdict == FitVerdict::Fitted || verdict == FitVerdict::AtLimit;
}

bool determines_any(const FitResult& result) {
  return std::any_of(result.parameters.begin(), result.parameters.end(),
                     [](const FittedParameter& each) { return is_determined(each.verdict); });
}

FitResult fit(const std::vector<FitParameter>& parameters, const Residuals& residuals) {
  FitResult result;
  std::vector<double> first;
  for (const FitParameter& each : parameters) {
    result.parameters.push_back(
        {each.name, each.value, each.value, 0.0, 0.0, FitVerdict::Undetermined, 0.0});
    first.push_back(each.value);
  }
  result.residuals_before = residuals(first);
  result.residuals_after = result.residuals_before;
  FitProblem problem(parameters, residuals);
  while (problem.size() > 0 && !result.residuals_before.empty()) {
    const Round round = solve(problem);
    const std::optional<Eigen::Index> worst = least_determined(problem, round);
    if (!worst) {
      report(problem, round, result);
      result.residuals_after = residuals(problem.values(round.x));
      break;
    }
    FittedParameter& each = result.parameters[problem.free()[static_cast<std::size_t>(*worst)]];
    if (is_pushed_to_limit(problem, round, *worst)) {
      each.verdict = FitVerdict::PushedToLimit;
      each.limit = problem.limit_at(round.x, *worst);
    }
    problem.hold(problem.free()[static_cast<std::size_t>(*worst)], each.value);
  }
  return result;
}

}  // namespace shardwright::calibration
