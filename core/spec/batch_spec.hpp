// A batch profile: how many tokens a model needs to reach a loss, and how many more with a large
// batch. docs/models/batch.md has the equations and where they hold.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/enum_names.hpp"
#include "core/spec/provenance.hpp"

namespace shardwright {

struct ModelSpec;

// A law of the loss L in nats for N parameters and D tokens.
enum class LossForm : std::uint8_t {
  // L = E + A / N^a + B / D^b (Hoffmann et al. 2022).
  Sum,
  // L = ((A / N)^(a / b) + B / D)^b (Kaplan et al. 2020).
  Joint,
};
constexpr auto enum_names(LossForm) {
  return std::array{"sum", "joint"};
}

// The limits of the runs that a law was fitted to; zero: none is known.
struct FittedRange {
  double least = 0.0, most = 0.0;

  bool holds(double value) const {
    return (least <= 0.0 || value >= least) && (most <= 0.0 || value <= most);
  }
  bool operator==(const FittedRange&) const = default;
};

struct LossSpec {
  LossForm form = LossForm::Sum;
  double irreducible = 0.0;
  double model_coefficient = 0.0, model_exponent = 0.0;
  double data_coefficient = 0.0, data_exponent = 0.0;
  // N counts embeddings and the output head.
  bool counts_embeddings = true;
  FittedRange parameters, tokens;

  bool operator==(const LossSpec&) const = default;
};

// What the critical batch depends on.
enum class CriticalBatchForm : std::uint8_t {
  Constant,
  // It grows with the tokens of the run: coefficient * D^exponent.
  Tokens,
  // It grows as the loss falls: coefficient / L^exponent.
  Loss,
};
constexpr auto enum_names(CriticalBatchForm) {
  return std::array{"constant", "tokens", "loss"};
}

// The batch, in tokens, at which a run needs twice the tokens of one with small batches.
struct CriticalBatchSpec {
  CriticalBatchForm form = CriticalBatchForm::Tokens;
  double coefficient = 0.0;
  double exponent = 0.0;
  // Of the tokens of the run.
  FittedRange tokens;

  bool operator==(const CriticalBatchSpec&) const = default;
};

// A rule for the peak learning rate, which is told and not applied: coefficient * N^model_exponent
// * D^data_exponent, and in proportion to batch^batch_exponent.
struct LearningRateSpec {
  double coefficient = 0.0;
  double model_exponent = 0.0, data_exponent = 0.0;
  double batch_exponent = 0.0;
  FittedRange parameters, tokens;

  bool operator==(const LearningRateSpec&) const = default;
};

struct BatchSpec {
  std::string name;
  LossSpec loss;
  CriticalBatchSpec critical;
  LearningRateSpec learning_rate;
  std::string notes;
  Sources sources;

  bool operator==(const BatchSpec&) const = default;
};

// The parameters that a law counts: those that a token meets, with or without embedding and head.
double counted_parameters(const ModelSpec& model, bool embeddings);

// The loss after `tokens` with small batches.
double loss_of(const LossSpec& law, double parameters, double tokens);

// The loss that no number of tokens reaches.
double least_loss(const LossSpec& law, double parameters);

// The tokens after which small batches reach the loss; infinite at the least loss and below.
double tokens_to_loss(const LossSpec& law, double parameters, double loss);

// The critical batch in tokens of a run that trains `tokens` with small batches to `loss`.
double critical_batch(const CriticalBatchSpec& law, double tokens, double loss);

// The tokens that a batch of `batch` tokens needs where small ones need `least`: E = E_min (1 + B /
// B_crit), McCandlish et al. 2018.
double tokens_at_batch(double least, double batch, double critical);

// The peak learning rate of the rule.
double learning_rate_of(const LearningRateSpec& rule, double parameters, double tokens);

}  // namespace shardwright
