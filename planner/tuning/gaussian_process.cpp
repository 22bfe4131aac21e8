#include "planner/tuning/gaussian_process.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "sim/run/random_stream.hpp"

namespace shardwright::planner {
namespace {

using Eigen::Index;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

double matern(const std::vector<double>& a, const std::vector<double>& b, double length) {
  double squares = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  const double r = std::sqrt(5.0 * squares) / length;
  return (1.0 + r + r * r / 3.0) * std::exp(-r);
}

double normal_density(double z) {
  return std::exp(-0.5 * z * z) / std::sqrt(2.0 * std::numbers::pi);
}

// The trials that a process learns from.
struct Observations {
  std::size_t rung = 0;
  std::vector<std::vector<double>> places;
  std::vector<double> losses;
  // Places of trials that reached the rung, and did not diverge before it.
  std::size_t reached = 0;
  // Of trials without a loss at the rung.
  std::vector<std::vector<double>> open;
};

std::vector<double> places_of(const Study& study, const std::vector<double>& values) {
  std::vector<double> places;
  for (std::size_t i = 0; i < values.size(); ++i)
    places.push_back(study.rules.parameters[i].place_of(values[i]));
  return places;
}

// Diverged trials count as the worst of the others.
Observations observe(const Study& study, std::size_t rung) {
  Observations seen;
  seen.rung = rung;
  double worst = -INFINITY;
  for (const Trial& trial : study.trials) {
    const bool has = trial.losses.size() > rung;
    if (has && std::isfinite(trial.losses[rung])) worst = std::max(worst, trial.losses[rung]);
  }
  for (const Trial& trial : study.trials) {
    const std::vector<double> place = places_of(study, trial.values);
    // A trial that diverged earlier would have here, too.
    if (trial.losses.size() <= rung && !trial.diverged()) {
      if (trial.running) seen.open.push_back(place);
      continue;
    }
    if (trial.losses.size() > rung) ++seen.reached;
    seen.places.push_back(place);
    seen.losses.push_back(trial.losses.size() > rung ? std::min(worst, trial.losses[rung]) : worst);
  }
  if (!std::isfinite(worst)) seen.places.clear();
  return seen;
}

// With the expected losses of what is open.
GaussianProcess process_of(const Observations& seen) {
  GaussianProcess process(seen.places, seen.losses);
  if (seen.open.empty()) return process;
  auto places = seen.places;
  auto losses = seen.losses;
  for (const std::vector<double>& place : seen.open) {
    places.push_back(place);
    losses.push_back(process.at(place).mean);
  }
  return GaussianProcess(std::move(places), losses);
}

}  // namespace

GaussianProcess::GaussianProcess(std::vector<std::vector<double>> places,
                                 const std::vector<double>& values)
    : places_(std::move(places)) {
  const auto count = static_cast<double>(values.size());
  mean_ = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0.0;
  for (const double value : values) squares += (value - mean_) * (value - mean_);
  scale_ = squares > 0.0 ? std::sqrt(squares / count) : 1.0;
  std::vector<double> scaled;
  for (const double value : values) scaled.push_back((value - mean_) / scale_);
  const double dimensions = std::sqrt(static_cast<double>(places_.front().size()));
  double best = -INFINITY, best_length = 0.0, best_noise = 0.0;
  for (const double length : {0.1, 0.2, 0.4, 0.8, 1.6}) {
    for (const double noise : {1e-4, 1e-2, 1e-1}) {
      fit(length * dimensions, noise, scaled);
      if (log_likelihood_ <= best) continue;
      best = log_likelihood_;
      best_length = length * dimensions;
      best_noise = noise;
    }
  }
  fit(best_length, best_noise, scaled);
}

void GaussianProcess::fit(double length, double noise, const std::vector<double>& scaled) {
  const auto count = static_cast<Index>(places_.size());
  length_ = length;
  RowMajor kernel(count, count);
  for (Index i = 0; i < count; ++i) {
    for (Index j = 0; j < count; ++j) {
      kernel(i, j) = matern(places_[static_cast<std::size_t>(i)],
                            places_[static_cast<std::size_t>(j)], length) +
                     (i == j ? noise : 0.0);
    }
  }
  const Eigen::LLT<RowMajor> cholesky(kernel);
  const RowMajor lower = cholesky.matrixL();
  const Eigen::Map<const Eigen::VectorXd> values(scaled.data(), count);
  const Eigen::VectorXd weights = cholesky.solve(values);
  factor_.assign(lower.data(), lower.data() + lower.size());
  weights_.assign(weights.data(), weights.data() + count);
  log_likelihood_ = -0.5 * values.dot(weights) - lower.diagonal().array().log().sum();
}

GaussianProcess::Prediction GaussianProcess::at(const std::vector<double>& place) const {
  const auto count = static_cast<Index>(places_.size());
  Eigen::VectorXd covariance(count);
  for (Index i = 0; i < count; ++i)
    covariance[i] = matern(place, places_[static_cast<std::size_t>(i)], length_);
  const Eigen::Map<const RowMajor> factor(factor_.data(), count, count);
  const Eigen::Map<const Eigen::VectorXd> weights(weights_.data(), count);
  const Eigen::VectorXd part = factor.triangularView<Eigen::Lower>().solve(covariance);
  const double variance = std::max(0.0, 1.0 - part.squaredNorm());
  return {mean_ + scale_ * covariance.dot(weights), scale_ * std::sqrt(variance)};
}

double expected_improvement(const GaussianProcess::Prediction& at, double best) {
  if (at.deviation <= 0.0) return std::max(0.0, best - at.mean);
  const double z = (best - at.mean) / at.deviation;
  return at.deviation * (z * 0.5 * std::erfc(-z / std::sqrt(2.0)) + normal_density(z));
}

std::optional<std::vector<double>> proposed_values(const Study& study) {
  constexpr int kCandidates = 2000;
  const std::size_t dimensions = study.rules.parameters.size();
  Observations seen;
  for (std::size_t rung = study.rules.rungs.size(); rung-- > 0;) {
    seen = observe(study, rung);
    if (!seen.places.empty() && seen.reached >= dimensions + 2) break;
  }
  if (seen.places.empty() || seen.reached < dimensions + 2) return std::nullopt;
  const GaussianProcess process = process_of(seen);
  const double best = *std::ranges::min_element(seen.losses);
  // A stream of its own, beside those of random values.
  sim::RandomStream random(study.rules.seed, study.trials.size(), dimensions);
  std::vector<double> chosen;
  double most = -1.0;
  for (int candidate = 0; candidate < kCandidates; ++candidate) {
    std::vector<double> values;
    for (const TunedParameter& parameter : study.rules.parameters)
      values.push_back(parameter.value_at(random.uniform()));
    const double gain = expected_improvement(process.at(places_of(study, values)), best);
    if (gain <= most) continue;
    most = gain;
    chosen = std::move(values);
  }
  return chosen;
}

}  // namespace shardwright::planner
