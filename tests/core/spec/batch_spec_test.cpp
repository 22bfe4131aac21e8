// Laws of loss and of the critical batch: inverses, published values, and profiles.
#include "core/spec/batch_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/spec/batch_json.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/profile_library.hpp"
#include "tests/thrown.hpp"

namespace shardwright {
namespace {

TEST(BatchLaws, TokensToALossAreTheInverseOfTheLossOfTokens) {
  for (const std::string& name : shipped_batches()) {
    const LossSpec law = load_batch(name).loss;
    for (const double parameters : {1e8, 7e9, 4e11}) {
      double last = INFINITY;
      for (const double tokens : {1e9, 1e11, 1.5e13}) {
        const double loss = loss_of(law, parameters, tokens);
        EXPECT_LT(loss, last) << name;
        EXPECT_GT(loss, least_loss(law, parameters)) << name;
        EXPECT_NEAR(tokens_to_loss(law, parameters, loss) / tokens, 1.0, 1e-6) << name;
        last = loss;
      }
      EXPECT_TRUE(std::isinf(tokens_to_loss(law, parameters, least_loss(law, parameters))));
    }
  }
}

// The number of parameters with the lowest loss for 6 N D FLOP, by golden section over log N.
double best_parameters(const LossSpec& law, double flop) {
  double low = std::log(1e7), high = std::log(1e14);
  const auto loss = [&](double log_n) {
    const double n = std::exp(log_n);
    return loss_of(law, n, flop / (6.0 * n));
  };
  for (int i = 0; i < 100; ++i) {
    const double a = high - 0.618034 * (high - low), b = low + 0.618034 * (high - low);
    (loss(a) < loss(b) ? high : low) = loss(a) < loss(b) ? b : a;
  }
  return std::exp(low);
}

// Besiroglu et al. (2024), figure 5: about 20 tokens a parameter at any budget with their fit.
// Hoffmann et al. (2022), section 3.3: 40 B parameters by approach 3 at the budget of Gopher,
// 5.76e23 FLOP.
TEST(BatchLaws, BestModelsOfABudgetAreThePublishedOnes) {
  const LossSpec corrected = load_batch("hoffmann-corrected").loss;
  for (const double flop : {1e22, 5.76e23, 1e26}) {
    const double n = best_parameters(corrected, flop);
    EXPECT_NEAR(flop / (6.0 * n) / n, 18.5, 3.0);
  }
  EXPECT_NEAR(best_parameters(load_batch("hoffmann-2022").loss, 5.76e23) / 40e9, 1.0, 0.02);
  EXPECT_GT(best_parameters(load_batch("kaplan-2020").loss, 5.76e23), 2e11)
      << "larger models on fewer tokens";
}

// Values that the sources print, or that follow from them by hand.
TEST(BatchLaws, CriticalBatchesAreThePublishedOnes) {
  const CriticalBatchSpec by_loss = load_batch("kaplan-2020").critical;
  EXPECT_NEAR(critical_batch(by_loss, 0.0, 2.5) / 2.675e6, 1.0, 0.01);
  EXPECT_NEAR(critical_batch(by_loss, 0.0, 4.0) / 2.853e5, 1.0, 0.01);
  const double power_lines = critical_batch(load_batch("hoffmann-corrected").critical, 2e10, 0.0);
  const double step_law = critical_batch(load_batch("hoffmann-2022").critical, 2e10, 0.0);
  EXPECT_NEAR(power_lines / 5.5e6, 1.0, 0.03);
  EXPECT_NEAR(step_law / power_lines, 1.0, 0.1) << "two independent fits agree at 20 B tokens";
}

// McCandlish et al. (2018), equation 2.11: (S / S_min - 1) (E / E_min - 1) = 1.
TEST(BatchLaws, StepsAndTokensTradeOnAHyperbola) {
  const double least = 1e12, critical = 4e6, least_steps = least / critical;
  for (const double batch : {1e3, 1e6, 4e6, 1e8}) {
    const double tokens = tokens_at_batch(least, batch, critical);
    const double steps = tokens / batch;
    EXPECT_NEAR((steps / least_steps - 1.0) * (tokens / least - 1.0), 1.0, 1e-9);
  }
  EXPECT_DOUBLE_EQ(tokens_at_batch(least, critical, critical), 2.0 * least);
}

TEST(BatchLaws, ParametersAreCountedAsALawDoes) {
  const ModelSpec model = load_model("llama3-8b");
  const double all = counted_parameters(model, true);
  EXPECT_EQ(all, static_cast<double>(count_parameters(model).total));
  // Embedding and head of 128,256 x 4,096, and the final norm.
  EXPECT_EQ(all - counted_parameters(model, false), 2.0 * 128'256 * 4096 + 4096);
}

TEST(BatchProfiles, AreReadAsTheyAreWritten) {
  for (const std::string& name : shipped_batches()) {
    const BatchSpec spec = load_batch(name);
    EXPECT_EQ(read_batch(nlohmann::json(to_json(spec)), name), spec) << name;
  }
  const std::string problems = thrown_by([] {
    read_batch({{"schema", "shardwright/batch"},
                {"version", 1},
                {"name", "mine"},
                {"loss", {{"form", "sums"}, {"model_exponent", -1}}},
                {"critical_batch", {{"form", "constant"}, {"coefficient_token", 1e6}}}},
               "mine.json");
  });
  for (const char* problem :
       {"/loss/form", "did you mean \"sum\"", "/loss/model_exponent", "/loss/data_coefficient",
        "coefficient_token", "/critical_batch/coefficient_tokens"})
    EXPECT_THAT(problems, testing::HasSubstr(problem));
}

}  // namespace
}  // namespace shardwright
