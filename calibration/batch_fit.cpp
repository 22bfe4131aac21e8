#include "calibration/batch_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "calibration/error_statistics.hpp"
#include "core/base/error.hpp"
#include "core/spec/scenario.hpp"

namespace shardwright::calibration {
namespace {

// The first tokens of a run warm up; the rest is averaged over so many parts, because the loss of a
// step is noisy.
constexpr double kWarmupTokens = 0.1;
constexpr std::size_t kParts = 40, kFewestSteps = 20;

// A part of a run: means over some of its steps.
struct CurvePoint {
  double parameters = 0.0, tokens = 0.0, loss = 0.0, noise_scale = 0.0;
};

// `critical` turns the tokens of a step into those of small batches, which laws count; zero leaves
// them.
std::vector<CurvePoint> points_of(const LossCurve& curve, double critical) {
  std::vector<CurvePoint> each;
  double tokens = 0.0;
  for (const TrainedStep& step : curve.steps) {
    tokens += step.tokens / (critical > 0.0 ? 1.0 + step.tokens / critical : 1.0);
    each.push_back({curve.parameters, tokens, step.loss, step.noise_scale});
  }
  std::erase_if(each,
                [&](const CurvePoint& point) { return point.tokens < kWarmupTokens * tokens; });
  const std::size_t parts = std::min(kParts, each.size());
  std::vector<CurvePoint> points;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t first = part * each.size() / parts, end = (part + 1) * each.size() / parts;
    CurvePoint mean{curve.parameters};
    // Steps whose gradients say nothing of their noise state none.
    double measured = 0.0;
    for (std::size_t i = first; i < end; ++i) {
      const auto share = 1.0 / static_cast<double>(end - first);
      mean.tokens += share * each[i].tokens;
      mean.loss += share * each[i].loss;
      mean.noise_scale += each[i].noise_scale;
      measured += each[i].noise_scale > 0.0 ? 1.0 : 0.0;
    }
    if (measured > 0.0) mean.noise_scale /= measured;
    points.push_back(mean);
  }
  return points;
}

std::vector<CurvePoint> points_of(const std::vector<LossCurve>& curves, double critical) {
  std::vector<CurvePoint> points;
  for (const LossCurve& curve : curves) {
    const std::vector<CurvePoint> own = points_of(curve, critical);
    points.insert(points.end(), own.begin(), own.end());
  }
  return points;
}

// The least loss of each size of model, and the fall of the loss with tokens: L = c_N + B / D^b.
struct CurveLaw {
  std::vector<double> least;
  double coefficient = 0.0, exponent = 0.0;
  double squares = 0.0;
};

// Means over the points of one size of model.
struct SizeMeans {
  double count = 0.0, fall = 0.0, loss = 0.0;
};

// Returns the best law with this exponent, by linear least squares. The coefficient of the fall
// follows from the deviations of the points from the means of their size. If a loss of that law
// would be negative, the law is fitted without a least loss for any size.
CurveLaw law_with(double exponent, const std::vector<CurvePoint>& points,
                  const std::vector<double>& sizes) {
  std::vector<std::size_t> size_of;
  std::vector<double> fall_of;
  for (const CurvePoint& point : points) {
    size_of.push_back(
        static_cast<std::size_t>(std::ranges::find(sizes, point.parameters) - sizes.begin()));
    fall_of.push_back(std::pow(point.tokens, -exponent));
  }
  std::vector<SizeMeans> means(sizes.size());
  double raw_products = 0.0, raw_squares = 0.0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    SizeMeans& mean = means[size_of[i]];
    const double fall = fall_of[i];
    mean.count += 1.0;
    mean.fall += fall;
    mean.loss += points[i].loss;
    raw_products += fall * points[i].loss;
    raw_squares += fall * fall;
  }
  for (SizeMeans& mean : means) {
    mean.fall /= mean.count;
    mean.loss /= mean.count;
  }
  double products = 0.0, squares = 0.0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const SizeMeans& mean = means[size_of[i]];
    const double fall = fall_of[i] - mean.fall;
    products += fall * (points[i].loss - mean.loss);
    squares += fall * fall;
  }
  CurveLaw law;
  law.exponent = exponent;
  law.coefficient = squares > 0.0 ? products / squares : 0.0;
  for (const SizeMeans& mean : means) law.least.push_back(mean.loss - law.coefficient * mean.fall);
  if (law.coefficient < 0.0 || std::ranges::min(law.least) < 0.0) {
    law.least.assign(sizes.size(), 0.0);
    law.coefficient = raw_products / raw_squares;
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double error = law.least[size_of[i]] + law.coefficient * fall_of[i] - points[i].loss;
    law.squares += error * error;
  }
  return law;
}

CurveLaw fit_curve_law(const std::vector<CurvePoint>& points, const std::vector<double>& sizes) {
  constexpr double kLeast = 0.02, kMost = 2.0;
  constexpr int kExponents = 400;
  std::optional<CurveLaw> best;
  for (int i = 0; i <= kExponents; ++i) {
    const double exponent = kLeast * std::pow(kMost / kLeast, static_cast<double>(i) / kExponents);
    CurveLaw law = law_with(exponent, points, sizes);
    if (!best || law.squares < best->squares) best = std::move(law);
  }
  return *best;
}

// Splits the least losses of several sizes into E + A / N^a with the exponent at hand.
void set_model_terms(const CurveLaw& law, const std::vector<double>& sizes, LossSpec& loss) {
  const auto count = static_cast<double>(sizes.size());
  const double mean = std::accumulate(law.least.begin(), law.least.end(), 0.0) / count;
  loss.irreducible = mean;
  loss.model_coefficient = 0.0;
  if (sizes.size() < 2) return;
  std::vector<double> terms;
  for (const double size : sizes) terms.push_back(std::pow(size, -loss.model_exponent));
  const double centre = std::accumulate(terms.begin(), terms.end(), 0.0) / count;
  double products = 0.0, squares = 0.0, raw_products = 0.0, raw_squares = 0.0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    products += (terms[i] - centre) * (law.least[i] - mean);
    squares += (terms[i] - centre) * (terms[i] - centre);
    raw_products += terms[i] * law.least[i];
    raw_squares += terms[i] * terms[i];
  }
  const double slope = products / squares;
  if (slope <= 0.0) return;
  loss.model_coefficient = slope;
  loss.irreducible = mean - slope * centre;
  if (loss.irreducible >= 0.0) return;
  loss.irreducible = 0.0;
  loss.model_coefficient = raw_products / raw_squares;
}

// The noise scale grows as tokens^exponent if the runs are long enough to tell; otherwise its later
// values are the constant. Nothing if none was measured.
std::optional<CriticalBatchSpec> fit_critical(const std::vector<CurvePoint>& points) {
  constexpr double kLongEnough = 4.0, kFlattest = 0.05, kSteepest = 2.0;
  std::vector<double> x, y;
  for (const CurvePoint& point : points) {
    if (point.noise_scale <= 0.0) continue;
    x.push_back(std::log(point.tokens));
    y.push_back(std::log(point.noise_scale));
  }
  if (x.empty()) return std::nullopt;
  const auto count = static_cast<double>(x.size());
  const double x_mean = std::accumulate(x.begin(), x.end(), 0.0) / count;
  const double y_mean = std::accumulate(y.begin(), y.end(), 0.0) / count;
  double products = 0.0, squares = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    products += (x[i] - x_mean) * (y[i] - y_mean);
    squares += (x[i] - x_mean) * (x[i] - x_mean);
  }
  const auto [least, most] = std::ranges::minmax(x);
  CriticalBatchSpec critical;
  critical.tokens = {std::exp(least), std::exp(most)};
  const double slope = squares > 0.0 ? products / squares : 0.0;
  if (most - least >= std::log(kLongEnough) && slope > kFlattest && slope < kSteepest) {
    critical.form = CriticalBatchForm::Tokens;
    critical.exponent = slope;
    critical.coefficient = std::exp(y_mean - slope * x_mean);
    return critical;
  }
  critical.form = CriticalBatchForm::Constant;
  std::vector<double> later;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] >= x_mean) later.push_back(y[i]);
  }
  critical.coefficient = std::exp(quantile(later, 0.5));
  return critical;
}

double median_error(const LossSpec& law, const std::vector<CurvePoint>& points) {
  std::vector<double> errors;
  for (const CurvePoint& point : points)
    errors.push_back(std::abs(loss_of(law, point.parameters, point.tokens) / point.loss - 1.0));
  return quantile(errors, 0.5);
}

void add_sources(BatchFit& fit, const std::string& source) {
  const Provenance fitted{source, Confidence::Fitted, 0.0, 0.0, fit.residual};
  Sources& sources = fit.spec.sources;
  for (const char* key :
       {"irreducible_nats", "model_coefficient", "data_coefficient", "data_exponent",
        "least_parameters", "most_parameters", "least_tokens", "most_tokens"})
    sources[std::string("/loss/") + key] = fitted;
  if (fit.with_noise == 0) return;
  for (const char* key : {"coefficient_tokens", "exponent", "least_tokens", "most_tokens"})
    sources[std::string("/critical_batch/") + key] = {source, Confidence::Fitted};
}

}  // namespace

LossCurve load_loss_curve(const std::filesystem::path& folder, const LossSpec& base) {
  const std::filesystem::path plan = folder / "plan.json";
  if (!std::filesystem::exists(plan)) {
    throw InputError(folder.string(),
                     {{"", "no plan.json", "an output folder of shardwright run"}});
  }
  LossCurve curve;
  curve.name = folder.string();
  curve.parameters = counted_parameters(load_scenario(plan.string()).model, base.counts_embeddings);
  curve.steps = trained_steps(folder);
  ProblemList problems((folder / "metrics.jsonl").string());
  if (curve.steps.size() < kFewestSteps) {
    problems.add("", fmt::format("{} steps", curve.steps.size()),
                 fmt::format("at least {}, of which a curve can be told", kFewestSteps));
  }
  for (const TrainedStep& step : curve.steps) {
    if (std::isfinite(step.loss) && step.loss > 0.0 && step.tokens > 0.0) continue;
    problems.add(fmt::format("step {}", step.step), "no loss above 0, or no tokens per second",
                 "a run that did not diverge");
    break;
  }
  problems.throw_if_any();
  return curve;
}

BatchFit fit_batch_law(const std::vector<LossCurve>& curves, const BatchSpec& base,
                       const std::string& name, const std::string& source) {
  BatchFit fit;
  fit.spec = base;
  fit.spec.name = name;
  const auto measured = [](const TrainedStep& step) { return step.noise_scale > 0.0; };
  for (const LossCurve& curve : curves)
    fit.with_noise += std::ranges::any_of(curve.steps, measured) ? 1U : 0U;
  if (const auto critical = fit_critical(points_of(curves, 0.0))) fit.spec.critical = *critical;
  std::vector<double> sizes;
  double tokens = 0.0;
  for (const LossCurve& curve : curves) {
    sizes.push_back(curve.parameters);
    for (const TrainedStep& step : curve.steps) tokens += step.tokens;
  }
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  // The law of a run of their mean length.
  tokens /= static_cast<double>(curves.size());
  const double critical =
      critical_batch(fit.spec.critical, tokens, curves.back().steps.back().loss);
  const std::vector<CurvePoint> points = points_of(curves, critical);
  const CurveLaw law = fit_curve_law(points, sizes);
  LossSpec& loss = fit.spec.loss;
  loss.form = LossForm::Sum;
  loss.data_coefficient = law.coefficient;
  loss.data_exponent = law.exponent;
  set_model_terms(law, sizes, loss);
  const auto [least, most] = std::ranges::minmax(points, {}, &CurvePoint::tokens);
  loss.parameters = {sizes.front(), sizes.back()};
  loss.tokens = {least.tokens, most.tokens};
  fit.residual = median_error(loss, points);
  fit.spec.notes = fmt::format(
      "Fitted to the loss curves of {} of the executor, whose learning rates had not fallen to "
      "their ends at most points: they ask for more tokens than runs that end there.{}",
      curves.size() == 1 ? "a run" : fmt::format("{} runs", curves.size()),
      sizes.size() == 1 ? " All are of one size: the loss of others is not known." : "");
  add_sources(fit, source);
  return fit;
}

}  // namespace shardwright::calibration
