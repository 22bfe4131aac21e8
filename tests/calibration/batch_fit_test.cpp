// A batch profile from loss curves that a known law makes.
#include "calibration/batch_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "core/spec/batch_json.hpp"
#include "core/spec/profile_library.hpp"

namespace shardwright::calibration {
namespace {

// The loss of each step is that of the law at the tokens of small batches, and a little noise.
LossCurve curve_of(const BatchSpec& truth, double parameters, double batch, std::size_t steps,
                   bool measures_noise) {
  std::mt19937 random(static_cast<unsigned>(steps));
  std::normal_distribution<double> noise(0.0, 0.01);
  LossCurve curve{"run", parameters, {}};
  const double all = batch * static_cast<double>(steps);
  for (std::size_t i = 0; i < steps; ++i) {
    const double tokens = batch * static_cast<double>(i + 1);
    const double critical = critical_batch(truth.critical, all, 0.0);
    const double small = tokens / (1.0 + batch / critical);
    curve.steps.push_back(
        {static_cast<std::int64_t>(i), loss_of(truth.loss, parameters, small) + noise(random),
         measures_noise ? critical_batch(truth.critical, tokens, 0.0) : 0.0, batch});
  }
  return curve;
}

BatchSpec truth() {
  BatchSpec spec = load_batch("hoffmann-corrected");
  spec.critical.form = CriticalBatchForm::Constant;
  spec.critical.coefficient = 50'000.0;
  return spec;
}

TEST(BatchFit, FindsTheLawOfTwoSizes) {
  const BatchSpec law = truth();
  const BatchFit fit = fit_batch_law(
      {curve_of(law, 1e7, 16'384, 4000, true), curve_of(law, 1e8, 65'536, 6000, true)},
      load_batch("hoffmann-corrected"), "mine", "a test");
  EXPECT_NEAR(fit.spec.critical.coefficient, 50'000.0, 1.0);
  EXPECT_LT(fit.residual, 0.005);
  // Between the runs' tokens, and at a size between theirs.
  for (const double tokens : {2e7, 6e7}) {
    for (const double parameters : {1e7, 3e7, 1e8}) {
      EXPECT_NEAR(loss_of(fit.spec.loss, parameters, tokens), loss_of(law.loss, parameters, tokens),
                  0.03)
          << parameters;
    }
  }
  // The profile is a document that is read again.
  EXPECT_EQ(read_batch(to_json(fit.spec), "written").loss, fit.spec.loss);
}

TEST(BatchFit, OneSizeSaysNothingAboutOthers) {
  const BatchSpec law = truth();
  const BatchFit fit = fit_batch_law({curve_of(law, 1e8, 32'768, 3000, false)},
                                     load_batch("kaplan-2020"), "mine", "a test");
  EXPECT_EQ(fit.spec.loss.model_coefficient, 0.0);
  EXPECT_EQ(fit.spec.loss.parameters, (FittedRange{1e8, 1e8}));
  EXPECT_EQ(fit.with_noise, 0U);
  EXPECT_EQ(fit.spec.critical, load_batch("kaplan-2020").critical);
  EXPECT_NO_THROW(read_batch(to_json(fit.spec), "written"));
}

TEST(BatchFit, FindsHowTheNoiseScaleGrows) {
  BatchSpec law = truth();
  law.critical = {CriticalBatchForm::Tokens, 20.0, 0.5, {}};
  const BatchFit fit = fit_batch_law({curve_of(law, 1e8, 32'768, 3000, true)},
                                     load_batch("hoffmann-corrected"), "mine", "a test");
  EXPECT_EQ(fit.spec.critical.form, CriticalBatchForm::Tokens);
  EXPECT_NEAR(fit.spec.critical.exponent, 0.5, 0.01);
  EXPECT_NEAR(fit.spec.critical.coefficient / 20.0, 1.0, 0.2);
}

}  // namespace
}  // namespace shardwright::calibration
