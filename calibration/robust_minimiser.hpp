// Robust nonlinear least squares within bounds: Levenberg-Marquardt on normal equations whose rows
// are weighted anew at each step, so that a few odd rows do not bend the minimum. Deterministic.
#pragma once

#include <Eigen/Core>
#include <functional>

namespace shardwright::calibration {

struct RobustProblem {
  using Vector = Eigen::VectorXd;

  // The bounds of each coordinate.
  Vector least, most;
  // The residuals of all rows at a point.
  std::function<Vector(const Vector& point)> residuals;
  // The derivatives of these, by row and coordinate, from the residuals at the point itself.
  std::function<Eigen::MatrixXd(const Vector& point, const Vector& residuals)> derivatives;
  // The loss over all rows.
  std::function<double(const Vector& residuals)> loss;
  // The weights with which squares of residuals have the derivatives of the loss, up to a factor.
  std::function<Vector(const Vector& residuals)> weights;
  // The normal prior of the coordinates: means, and the inverse of their covariance. Both are empty
  // without a prior.
  Vector prior;
  Eigen::MatrixXd precision;

  double cost(const Vector& at_point, const Vector& point) const;
};

struct NormalEquations {
  Eigen::MatrixXd matrix;
  Eigen::VectorXd gradient;
};

// The normal equations of a step from `point`, whose residuals have these derivatives and weights.
NormalEquations normal_equations(const RobustProblem& problem, const Eigen::MatrixXd& derivatives,
                                 const Eigen::VectorXd& residuals, const Eigen::VectorXd& weights,
                                 const Eigen::VectorXd& point);

struct MinimiserOptions {
  int most_iterations = 60;
  // The relative gain of a step below which the search stops.
  double enough = 1e-5;
  // The damping of the first step, the least one after a step that failed, and the one at which
  // the search gives up.
  double first_damping = 1e-2, retry_damping = 0.0, most_damping = 1e8;
  // Hears the number of each iteration, from 0, and the cost so far; false stops the search.
  std::function<bool(int iteration, double cost)> goes_on;
};

struct Minimum {
  Eigen::VectorXd point, residuals;
  // The matrix of the normal equations of the last step.
  Eigen::MatrixXd curvature;
};

// Searches from `start`, whose residuals are known.
Minimum minimise(const RobustProblem& problem, const Eigen::VectorXd& start,
                 const Eigen::VectorXd& residuals, const MinimiserOptions& options = {});

}  // namespace shardwright::calibration
