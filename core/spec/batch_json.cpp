#include "core/spec/batch_json.hpp"

#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/spec/field_json.hpp"
#include "core/spec/figures.hpp"

namespace shardwright {
namespace {

constexpr NumberRange kExponent{0.0, 10.0, true};
constexpr NumberRange kAnyExponent{-10.0, 10.0, false};

void describe_range(const char* least, const char* most, FittedRange& range, FieldVisitor& fields,
                    const char* of_what) {
  fields.number(least, range.least, kNonNegative, kOmissible, of_what);
  fields.number(most, range.most, kNonNegative, kOmissible, "the largest of them; 0: not known");
}

void describe_loss(LossSpec& loss, FieldVisitor& fields) {
  fields.choice("form", loss.form, kRequired,
                "sum: E + A / N^a + B / D^b; joint: ((A / N)^(a / b) + B / D)^b");
  fields.number("irreducible_nats", loss.irreducible, kNonNegative, kOmissible,
                "E, the loss of a model without limits; only of sums");
  fields.number("model_coefficient", loss.model_coefficient, kNonNegative, kRequired,
                "A; 0: the law is of one size of model");
  fields.number("model_exponent", loss.model_exponent, kExponent, kRequired, "a");
  fields.number("data_coefficient", loss.data_coefficient, kPositive, kRequired, "B");
  fields.number("data_exponent", loss.data_exponent, kExponent, kRequired, "b");
  fields.boolean("counts_embeddings", loss.counts_embeddings, kOptional,
                 "N counts the embedding and the output head");
  describe_range("least_parameters", "most_parameters", loss.parameters, fields,
                 "parameters of the smallest model behind the law; 0: not known");
  describe_range("least_tokens", "most_tokens", loss.tokens, fields,
                 "tokens of the shortest run behind it; 0: not known");
}

void describe_critical(CriticalBatchSpec& critical, FieldVisitor& fields) {
  fields.choice("form", critical.form, kRequired,
                "constant: the coefficient; tokens: times D^exponent; loss: over L^exponent");
  fields.number("coefficient_tokens", critical.coefficient, kPositive, kRequired,
                "critical batch in tokens, before the other factor");
  fields.number("exponent", critical.exponent, kAnyExponent, kOmissible, "exponent of D or of L");
  describe_range("least_tokens", "most_tokens", critical.tokens, fields,
                 "tokens of the shortest run behind the law; 0: not known");
}

void describe_learning_rate(LearningRateSpec& rule, FieldVisitor& fields) {
  fields.number("coefficient", rule.coefficient, kNonNegative, kOmissible,
                "learning rate, before the other factors; 0: no rule");
  fields.number("model_exponent", rule.model_exponent, kAnyExponent, kOmissible,
                "exponent of the parameters without embedding and head");
  fields.number("data_exponent", rule.data_exponent, kAnyExponent, kOmissible,
                "exponent of the tokens");
  fields.number("batch_exponent", rule.batch_exponent, kAnyExponent, kOmissible,
                "exponent of the batch where it is changed within a run");
  describe_range("least_parameters", "most_parameters", rule.parameters, fields,
                 "parameters of the smallest model behind the rule; 0: not known");
  describe_range("least_tokens", "most_tokens", rule.tokens, fields,
                 "tokens of the shortest run behind it; 0: not known");
}

}  // namespace

void describe(BatchSpec& batch, FieldVisitor& fields) {
  fields.header("shardwright/batch", true);
  fields.text("name", batch.name, kRequired, "name of the profile");
  fields.section("loss", kRequired, "loss in nats by parameters N and tokens D",
                 [&] { describe_loss(batch.loss, fields); });
  fields.section("critical_batch", kRequired,
                 "batch at which a run needs twice the tokens of one with small batches",
                 [&] { describe_critical(batch.critical, fields); });
  fields.section("learning_rate", kOmissible,
                 "rule for the peak learning rate; it is told, not applied",
                 [&] { describe_learning_rate(batch.learning_rate, fields); });
  fields.text("notes", batch.notes, kOmissible, "what a reader of the profile should know");
}

BatchSpec read_batch(const nlohmann::json& document, const std::string& source) {
  ProblemList problems(source);
  BatchSpec spec;
  std::vector<std::string> lines;
  read_figures(document, "", problems, spec.sources, lines,
               [&](FieldVisitor& fields) { describe(spec, fields); });
  problems.throw_if_any();
  return spec;
}

nlohmann::ordered_json to_json(const BatchSpec& spec) {
  nlohmann::ordered_json document = write_spec(spec, spec.sources);
  attach_sources(document, spec.sources);
  return document;
}

}  // namespace shardwright
