// Values that a Gaussian process proposes for the next trial (Jones et al. 1998, Snoek et al.
// 2012).
#pragma once

#include <optional>
#include <vector>

#include "planner/tuning/study.hpp"

namespace shardwright::planner {

// Models a function on the unit cube with a Matérn 5/2 kernel of one length in all dimensions. The
// length and the noise are the pair with the greatest likelihood among a few candidates.
class GaussianProcess {
 public:
  // One value a place; at least two places.
  GaussianProcess(std::vector<std::vector<double>> places, const std::vector<double>& values);

  struct Prediction {
    double mean = 0.0, deviation = 0.0;
  };
  Prediction at(const std::vector<double>& place) const;
  double log_likelihood() const { return log_likelihood_; }

 private:
  void fit(double length, double noise, const std::vector<double>& scaled);

  std::vector<std::vector<double>> places_;
  double mean_ = 0.0, scale_ = 1.0;
  double length_ = 0.0;
  double log_likelihood_ = 0.0;
  // The lower triangle of the kernel's Cholesky factor, row by row, and the kernel's inverse times
  // the values.
  std::vector<double> factor_, weights_;
};

// By how much a value below `best` is expected to be better.
double expected_improvement(const GaussianProcess::Prediction& at, double best);

// The values with the greatest expected improvement over the trials at the highest rung that has
// enough of them. Those that are still to reach it count with the value that the process expects of
// them. Nothing while no rung has enough.
std::optional<std::vector<double>> proposed_values(const Study& study);

}  // namespace shardwright::planner
