#include "validation/convergence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/base/data_directory.hpp"
#include "core/base/json_lines.hpp"
#include "core/base/quantity_text.hpp"
#include "core/lowering/replica_exchange.hpp"
#include "core/program/groups.hpp"
#include "core/spec/plan_text.hpp"

namespace shardwright::validation {
namespace {

// On the tokens that are best for the computation C ~ parameters * tokens, the loss falls as fast
// with the logarithm of the tokens as with that of the parameters (Hoffmann et al., arXiv
// 2203.15556, section 3.3), so each has half of the slope along them.
constexpr double kShareOfTokens = 0.5;

template <class Number>
std::pair<Number, Number> range_of(ObjectReader& row, const char* key, std::vector<Number> limits) {
  if (limits.size() == 2 && limits[0] <= limits[1]) return {limits[0], limits[1]};
  row.problem(key, fmt::format("{} numbers", limits.size()), "two numbers, the smaller one first");
  return {};
}

LossByParameters read_loss(ObjectReader loss) {
  LossByParameters law;
  law.coefficient = loss.number("coefficient");
  law.exponent = loss.number("exponent", {-1.0, 0.0, false});
  loss.refuse_unknown_keys();
  return law;
}

std::string read_source(ObjectReader source) {
  const std::string title = source.name("title"), where = source.name("where");
  source.integer("year", {1950, 2100});
  source.refuse_unknown_keys();
  return fmt::format("{}, {}", title, where);
}

ConvergenceRow read_row(ObjectReader& object) {
  ConvergenceRow row;
  row.id = object.name("id");
  row.source = read_source(object.object("source"));
  object.boolean("verified");
  row.outer = object.choice<OuterOptimizer>("outer");
  for (const std::size_t form : object.choose_all("compression", names_of<ReplicaCompression>()))
    row.compression.push_back(static_cast<ReplicaCompression>(form));
  row.replicas = object.integer("replicas", {2, 1'000'000});
  row.inner_steps = range_of(object, "inner_steps", object.integers("inner_steps", {1, 1'000'000}));
  row.parameters = range_of(object, "parameters", object.numbers("parameters"));
  if (object.has("more_tokens")) {
    row.more_tokens =
        range_of(object, "more_tokens", object.numbers("more_tokens", {-1.0, 100.0, false}));
  } else {
    row.all_reduce_loss = read_loss(object.object("all_reduce_loss"));
    row.loss = read_loss(object.object("loss"));
    row.loss_error = object.number("loss_error_nats");
    row.tokens_per_parameter = object.number("tokens_per_parameter");
  }
  object.refuse_unknown_keys();
  return row;
}

const std::vector<ConvergenceRow>& shipped_rows() {
  static const std::vector<ConvergenceRow> rows = [] {
    const std::string file = (data_directory() / "measurements" / "convergence.jsonl").string();
    std::ifstream stream = open_json_lines(file);
    return read_convergence(stream, file);
  }();
  return rows;
}

std::string percent(double ratio) {
  return format_signed_percent(ratio);
}

}  // namespace

double LossByParameters::at(double parameters) const {
  return coefficient * std::pow(parameters, exponent);
}

std::vector<ConvergenceRow> read_convergence(std::istream& stream, const std::string& source) {
  std::vector<ConvergenceRow> rows;
  read_typed_lines(stream, source, [&](ObjectReader& object) { rows.push_back(read_row(object)); });
  return rows;
}

ConvergenceCost cost_of(const ConvergenceRow& row, double parameters) {
  ConvergenceCost cost;
  cost.measured = true;
  cost.source = row.source;
  if (row.more_tokens) {
    std::tie(cost.low, cost.high) = *row.more_tokens;
    return cost;
  }
  const double loss = row.all_reduce_loss.at(parameters);
  const double slope = kShareOfTokens * -row.all_reduce_loss.exponent * loss;
  const auto tokens = [&](double more_loss) { return std::exp(more_loss / slope) - 1.0; };
  const double more = row.loss.at(parameters) - loss;
  cost.low = tokens(more - row.loss_error);
  cost.likely = tokens(more);
  cost.high = tokens(more + row.loss_error);
  cost.tokens_per_parameter = row.tokens_per_parameter;
  return cost;
}

ConvergenceCost convergence_cost(const ModelSpec& model, const Plan& plan) {
  const ReplicaAgreement& agreed = plan.replicas;
  ConvergenceCost cost;
  // No measurement of stale updates was published of a language model (docs/models/replicas.md).
  if (agreed.stale()) return cost;
  if (!agreed.local()) {
    cost.measured = agreed.compression == ReplicaCompression::None;
    if (cost.measured) cost.likely = 0.0;
    return cost;
  }
  // Rows are of exchanges of all parameters at once, for which replicas wait.
  if (agreed.fragments > 1 || agreed.overlap_steps > 0 || agreed.local_share > 0.0) return cost;
  const auto parameters = static_cast<double>(count_parameters(model).total);
  const std::int64_t replicas = group_size(replica_group(plan, false), plan);
  const auto covers = [&](const ConvergenceRow& row) {
    return row.outer == agreed.outer && row.replicas == replicas &&
           std::find(row.compression.begin(), row.compression.end(), agreed.compression) !=
               row.compression.end() &&
           row.inner_steps.first <= agreed.inner_steps &&
           agreed.inner_steps <= row.inner_steps.second && row.parameters.first <= parameters &&
           parameters <= row.parameters.second;
  };
  const std::vector<ConvergenceRow>& rows = shipped_rows();
  const auto row = std::find_if(rows.begin(), rows.end(), covers);
  return row == rows.end() ? cost : cost_of(*row, parameters);
}

std::string cost_cell(const ConvergenceCost& cost) {
  if (!cost.known()) return "not known";
  if (cost.low == cost.high) return format_percent(cost.low);
  return fmt::format("{} to {}", percent(cost.low), percent(cost.high));
}

std::string cost_text(const ConvergenceCost& cost, const Plan& plan) {
  if (!cost.known())
    return fmt::format(
        "not known: no measurement was published of {} with as many replicas of a model "
        "of this size",
        replicas_text(plan));
  if (cost.source.empty()) return "none: its updates are those of an all-reduce";
  std::string text = cost.likely ? fmt::format("{} % ({} to {} %)", percent(*cost.likely),
                                               percent(cost.low), percent(cost.high))
                                 : fmt::format("{} to {} %", percent(cost.low), percent(cost.high));
  if (cost.tokens_per_parameter > 0.0)
    text += fmt::format(" in runs of {} tokens per parameter",
                        format_number(cost.tokens_per_parameter));
  return text + ", by " + cost.source;
}

nlohmann::ordered_json cost_json(const ConvergenceCost& cost) {
  if (!cost.known()) return {};
  return {{"more_tokens_ratio",
           cost.likely ? nlohmann::ordered_json(*cost.likely) : nlohmann::ordered_json()},
          {"low_ratio", cost.low},
          {"high_ratio", cost.high},
          {"source", cost.source}};
}

}  // namespace shardwright::validation
