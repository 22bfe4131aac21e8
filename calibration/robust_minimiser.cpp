#include "calibration/robust_minimiser.hpp"

#include <Eigen/Dense>
#include <algorithm>

namespace shardwright::calibration {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

// A coordinate this close to a bound is at it.
constexpr double kNearBound = 1e-4;

// A coordinate at a bound that the gradient pushes beyond it does not move.
void hold_at_bounds(const RobustProblem& problem, const VectorXd& x, NormalEquations& equations) {
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    const bool outwards = equations.gradient[i] > 0.0 ? x[i] - problem.least[i] < kNearBound
                                                      : problem.most[i] - x[i] < kNearBound;
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

}  // namespace

double RobustProblem::cost(const Vector& at_point, const Vector& point) const {
  if (prior.size() == 0) return loss(at_point);
  const Vector off = point - prior;
  return loss(at_point) + off.dot(precision * off);
}

NormalEquations normal_equations(const RobustProblem& problem, const MatrixXd& derivatives,
                                 const VectorXd& residuals, const VectorXd& weights,
                                 const VectorXd& point) {
  NormalEquations equations{derivatives.transpose() * weights.asDiagonal() * derivatives,
                            derivatives.transpose() * weights.asDiagonal() * residuals};
  if (problem.prior.size() > 0) {
    equations.matrix += problem.precision;
    equations.gradient += problem.precision * (point - problem.prior);
  }
  return equations;
}

Minimum minimise(const RobustProblem& problem, const VectorXd& start, const VectorXd& residuals,
                 const MinimiserOptions& options) {
  Minimum found{start, residuals, {}};
  double best = problem.cost(residuals, start), damping = options.first_damping;
  for (int iteration = 0; iteration < options.most_iterations; ++iteration) {
    if (options.goes_on && !options.goes_on(iteration, best)) break;
    NormalEquations equations =
        normal_equations(problem, problem.derivatives(found.point, found.residuals),
                         found.residuals, problem.weights(found.residuals), found.point);
    found.curvature = equations.matrix;
    hold_at_bounds(problem, found.point, equations);
    bool improved = false;
    double gain = 0.0;
    while (!improved && damping < options.most_damping) {
      const VectorXd next = (found.point + step_of(equations, damping))
                                .cwiseMax(problem.least)
                                .cwiseMin(problem.most);
      const VectorXd there = problem.residuals(next);
      const double cost = problem.cost(there, next);
      improved = cost < best;
      damping =
          improved ? std::max(1e-9, damping * 0.3) : std::max(options.retry_damping, damping * 4.0);
      if (!improved) continue;
      gain = (best - cost) / best;
      best = cost;
      found.point = next;
      found.residuals = there;
    }
    if (!improved || gain < options.enough) break;
  }
  return found;
}

}  // namespace shardwright::calibration
