#include "sim/calibration/least_squares.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <optional>

namespace shardwright::sim {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kScale = 0.08;       // s: residuals below it count by their squares
constexpr double kDifference = 2e-3;  // step of the numeric derivatives, in logarithms
constexpr int kMostIterations = 60;
constexpr double kEnough = 1e-5;  // relative gain at which the fit stops
constexpr double kMostDamping = 1e8;
constexpr double kNormalQuantile = 1.96;
constexpr double kWidest = 2.0;      // factor to either side of a determined parameter's interval
constexpr double kNearLimit = 1e-4;  // in logarithms

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
class Problem {
 public:
  Problem(const std::vector<FitParameter>& parameters, const Residuals& residuals)
      : parameters_(parameters), residuals_(residuals) {
    for (std::size_t i = 0; i < parameters.size(); ++i) free_.push_back(i);
  }

  Eigen::Index size() const { return static_cast<Eigen::Index>(free_.size()); }
  const std::vector<std::size_t>& free() const { return free_; }
  const FitParameter& parameter(Eigen::Index i) const {
    return parameters_[free_[static_cast<std::size_t>(i)]];
  }
  void fix(std::size_t parameter) { std::erase(free_, parameter); }

  VectorXd start() const {
    VectorXd x(size());
    for (Eigen::Index i = 0; i < size(); ++i) {
      const FitParameter& each = parameter(i);
      x[i] = std::log(std::clamp(each.value, each.least, each.most));
    }
    return x;
  }

  VectorXd clamped(VectorXd x) const {
    for (Eigen::Index i = 0; i < size(); ++i)
      x[i] = std::clamp(x[i], std::log(parameter(i).least), std::log(parameter(i).most));
    return x;
  }

  bool at_limit(const VectorXd& x, Eigen::Index i) const {
    return x[i] - std::log(parameter(i).least) < kNearLimit ||
           std::log(parameter(i).most) - x[i] < kNearLimit;
  }

  std::vector<double> values(const VectorXd& x) const {
    std::vector<double> all;
    for (const FitParameter& each : parameters_) all.push_back(each.value);
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
};

struct NormalEquations {
  MatrixXd matrix;
  VectorXd gradient;
};

NormalEquations normal_equations(const MatrixXd& jacobian, const VectorXd& residuals) {
  const VectorXd weights = weights_of(residuals);
  return {jacobian.transpose() * weights.asDiagonal() * jacobian,
          jacobian.transpose() * weights.asDiagonal() * residuals};
}

// A parameter at a limit that the gradient pushes beyond it does not move.
void hold_at_limits(const Problem& problem, const VectorXd& x, NormalEquations& equations) {
  for (Eigen::Index i = 0; i < problem.size(); ++i) {
    const bool outwards = equations.gradient[i] > 0.0
                              ? x[i] - std::log(problem.parameter(i).least) < kNearLimit
                              : std::log(problem.parameter(i).most) - x[i] < kNearLimit;
    if (!outwards) continue;
    equations.matrix.row(i).setZero();
    equations.matrix.col(i).setZero();
    equations.matrix(i, i) = 1.0;
    equations.gradient[i] = 0.0;
  }
}

VectorXd step_of(const NormalEquations& equations, double damping) {
  MatrixXd damped = equations.matrix;
  for (Eigen::Index i = 0; i < damped.rows(); ++i)
    damped(i, i) += damping * std::max(equations.matrix(i, i), 1e-12);
  return damped.ldlt().solve(-equations.gradient);
}

VectorXd minimise(const Problem& problem) {
  VectorXd x = problem.start();
  VectorXd residuals = problem.residuals(x);
  double best = loss(residuals), damping = 1e-2;
  for (int iteration = 0; iteration < kMostIterations; ++iteration) {
    NormalEquations equations = normal_equations(problem.jacobian(x, residuals), residuals);
    hold_at_limits(problem, x, equations);
    bool improved = false;
    double gain = 0.0;
    while (!improved && damping < kMostDamping) {
      const VectorXd next = problem.clamped(x + step_of(equations, damping));
      const VectorXd there = problem.residuals(next);
      improved = loss(there) < best;
      damping = improved ? std::max(1e-9, damping * 0.3) : damping * 4.0;
      if (!improved) continue;
      gain = (best - loss(there)) / best;
      best = loss(there);
      x = next;
      residuals = there;
    }
    if (!improved || gain < kEnough) break;
  }
  return x;
}

// Standard errors of the logarithms; none for parameters that the normal equations do not reach.
std::vector<std::optional<double>> standard_errors(const Problem& problem, const VectorXd& x) {
  const VectorXd residuals = problem.residuals(x);
  NormalEquations equations = normal_equations(problem.jacobian(x, residuals), residuals);
  const auto degrees = static_cast<double>(residuals.size() - problem.size());
  std::vector<std::optional<double>> errors(static_cast<std::size_t>(problem.size()));
  if (degrees <= 0.0) return errors;
  const VectorXd weights = weights_of(residuals);
  const double variance = (weights.array() * residuals.array().square()).sum() / degrees;
  // What no row feels has no error at all; a little of its own keeps the others' finite.
  for (Eigen::Index i = 0; i < problem.size(); ++i) equations.matrix(i, i) += 1e-9;
  const MatrixXd covariance =
      equations.matrix.ldlt().solve(MatrixXd::Identity(problem.size(), problem.size())) * variance;
  for (Eigen::Index i = 0; i < problem.size(); ++i) {
    const double square = covariance(i, i);
    if (square >= 0.0 && std::isfinite(square))
      errors[static_cast<std::size_t>(i)] = std::sqrt(square);
  }
  return errors;
}

struct Round {
  VectorXd x;
  std::vector<std::optional<double>> errors;
};

bool is_determined(const std::optional<double>& error) {
  return error && kNormalQuantile * *error <= std::log(kWidest);
}

// The free parameter that the data say least about, if they do not determine it.
std::optional<std::size_t> least_determined(const Problem& problem, const Round& round) {
  std::optional<std::size_t> worst;
  double largest = 0.0;
  for (Eigen::Index i = 0; i < problem.size(); ++i) {
    const auto& error = round.errors[static_cast<std::size_t>(i)];
    if (is_determined(error)) continue;
    const double size = error ? *error : 1e9;
    if (worst && size <= largest) continue;
    worst = problem.free()[static_cast<std::size_t>(i)];
    largest = size;
  }
  return worst;
}

Round solve(const Problem& problem) {
  Round round;
  round.x = minimise(problem);
  round.errors = standard_errors(problem, round.x);
  return round;
}

void report(const Problem& problem, const Round& round, FitResult& result) {
  for (Eigen::Index i = 0; i < problem.size(); ++i) {
    FittedParameter& each = result.parameters[problem.free()[static_cast<std::size_t>(i)]];
    each.value = std::exp(round.x[i]);
    each.verdict = FitVerdict::Fitted;
    if (problem.at_limit(round.x, i)) {
      each.verdict = FitVerdict::AtLimit;
      continue;
    }
    const double half = kNormalQuantile * round.errors[static_cast<std::size_t>(i)].value_or(0.0);
    each.low = each.value * std::exp(-half);
    each.high = each.value * std::exp(half);
  }
}

}  // namespace

const char* name_of(FitVerdict verdict) {
  switch (verdict) {
    case FitVerdict::Fitted:
      return "fitted";
    case FitVerdict::AtLimit:
      return "at its physical limit";
    case FitVerdict::Undetermined:
      return "not determined by the data";
  }
  return "";
}

FitResult fit(const std::vector<FitParameter>& parameters, const Residuals& residuals) {
  FitResult result;
  std::vector<double> first;
  for (const FitParameter& each : parameters) {
    result.parameters.push_back(
        {each.name, each.value, each.value, 0.0, 0.0, FitVerdict::Undetermined});
    first.push_back(each.value);
  }
  result.residuals_before = residuals(first);
  result.residuals_after = result.residuals_before;
  Problem problem(parameters, residuals);
  while (problem.size() > 0 && !result.residuals_before.empty()) {
    const Round round = solve(problem);
    if (const auto worst = least_determined(problem, round)) {
      problem.fix(*worst);
      continue;
    }
    report(problem, round, result);
    result.residuals_after = residuals(problem.values(round.x));
    break;
  }
  return result;
}

}  // namespace shardwright::sim
