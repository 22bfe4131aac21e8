#include "core/spec/batch_spec.hpp"

#include <cmath>
#include <limits>

#include "core/spec/model_spec.hpp"

namespace shardwright {
namespace {

double elements(const std::vector<ParameterTensor>& tensors) {
  double sum = 0.0;
  for (const ParameterTensor& tensor : tensors) sum += static_cast<double>(tensor.elements());
  return sum;
}

}  // namespace

double counted_parameters(const ModelSpec& model, bool embeddings) {
  const auto active = static_cast<double>(count_parameters(model).active);
  if (embeddings) return active;
  return active - elements(embedding_parameters(model)) - elements(head_parameters(model));
}

double loss_of(const LossSpec& law, double parameters, double tokens) {
  if (law.form == LossForm::Sum)
    return least_loss(law, parameters) + law.data_coefficient / std::pow(tokens, law.data_exponent);
  const double of_model = std::pow(least_loss(law, parameters), 1.0 / law.data_exponent);
  return std::pow(of_model + law.data_coefficient / tokens, law.data_exponent);
}

double least_loss(const LossSpec& law, double parameters) {
  if (law.form == LossForm::Sum)
    return law.irreducible + law.model_coefficient / std::pow(parameters, law.model_exponent);
  return std::pow(law.model_coefficient / parameters, law.model_exponent);
}

double tokens_to_loss(const LossSpec& law, double parameters, double loss) {
  const double least = least_loss(law, parameters);
  if (loss <= least) return std::numeric_limits<double>::infinity();
  if (law.form == LossForm::Sum)
    return std::pow(law.data_coefficient / (loss - least), 1.0 / law.data_exponent);
  return law.data_coefficient /
         (std::pow(loss, 1.0 / law.data_exponent) - std::pow(least, 1.0 / law.data_exponent));
}

double critical_batch(const CriticalBatchSpec& law, double tokens, double loss) {
  double batch = law.coefficient;
  if (law.form == CriticalBatchForm::Tokens) batch *= std::pow(tokens, law.exponent);
  if (law.form == CriticalBatchForm::Loss) batch /= std::pow(loss, law.exponent);
  return batch;
}

double tokens_at_batch(double least, double batch, double critical) {
  return least * (1.0 + batch / critical);
}

double learning_rate_of(const LearningRateSpec& rule, double parameters, double tokens) {
  return rule.coefficient * std::pow(parameters, rule.model_exponent) *
         std::pow(tokens, rule.data_exponent);
}

}  // namespace shardwright
