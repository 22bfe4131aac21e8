// The tokens that replicas need in addition for the loss of an all-reduce in each step, from
// published measurements (measurements/convergence.jsonl, docs/models/replicas.md).
#pragma once

#include <istream>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"

namespace shardwright::validation {

// A loss over the parameters of the model, in nats: coefficient * parameters ^ exponent.
struct LossByParameters {
  double coefficient = 0.0, exponent = 0.0;

  double at(double parameters) const;
};

// A published comparison of local steps with an all-reduce, and the range in which it holds.
struct ConvergenceRow {
  std::string id, source;
  OuterOptimizer outer = OuterOptimizer::Average;
  std::vector<ReplicaCompression> compression;
  std::int64_t replicas = 1;
  std::pair<std::int64_t, std::int64_t> inner_steps;
  std::pair<double, double> parameters;
  // Either the limits of the further tokens, relative to those of the all-reduce, …
  std::optional<std::pair<double, double>> more_tokens;
  // … or the losses of both on as many tokens of each parameter, and the error of their difference.
  LossByParameters all_reduce_loss, loss;
  double loss_error = 0.0;
  double tokens_per_parameter = 0.0;
};

// Throws InputError.
std::vector<ConvergenceRow> read_convergence(std::istream& stream, const std::string& source);

// Further tokens, relative to those of an all-reduce; negative if fewer are needed.
struct ConvergenceCost {
  bool measured = false;
  double low = 0.0, high = 0.0;
  // None where only the limits are known.
  std::optional<double> likely;
  // Tokens of each parameter in the measured runs; 0 if they were not stated so.
  double tokens_per_parameter = 0.0;
  // Empty for an all-reduce, which needs none.
  std::string source;

  bool known() const { return measured; }
};

// The cost of the row for a model of so many parameters.
ConvergenceCost cost_of(const ConvergenceRow& row, double parameters);

// Not measured outside of the range of every shipped row.
ConvergenceCost convergence_cost(const ModelSpec& model, const Plan& plan);

// "0", "-1 to 9", "not known"; in percent.
std::string cost_cell(const ConvergenceCost& cost);
// "4.0 % more tokens for the same loss (-0.9 to 9.1 %), by …", or "not known: …".
std::string cost_text(const ConvergenceCost& cost, const Plan& plan);
// {"known", "more_tokens_low_ratio", …}; null where it is not known.
nlohmann::ordered_json cost_json(const ConvergenceCost& cost);

}  // namespace shardwright::validation
