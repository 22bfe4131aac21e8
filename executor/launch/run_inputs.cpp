#include "executor/launch/run_inputs.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/text_hash.hpp"
#include "core/spec/plan_json.hpp"
#include "core/spec/stack_json.hpp"
#include "executor/checkpoint/weight_files.hpp"
#include "executor/data/hash.hpp"

namespace shardwright::executor {
namespace {

template <class Value>
std::string text_of(const Value& value) {
  return fmt::format("{}", value);
}

void add_plan(const Scenario& scenario, RunInputs& inputs) {
  inputs["model"] =
      fmt::format("{}, checksum {}", scenario.model.name, architecture_checksum(scenario.model));
  inputs["stack"] = fmt::format("{}, checksum {}", scenario.stack.name,
                                checksum_text(text_hash(to_json(scenario.stack).dump())));
  const nlohmann::json members = nlohmann::json(to_json(scenario.plan)).flatten();
  for (const auto& [pointer, value] : members.items())
    inputs["/plan" + pointer] = value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

RunInputs hyperparameters_of(const RunOptions& options, const Plan& plan) {
  const TrainingOptions& training = options.training;
  RunInputs inputs;
  // A batch that grows is no change of the run.
  if (!options.grows_batch()) inputs["/plan/global_batch"] = text_of(plan.global_batch);
  inputs["--steps"] = text_of(training.steps);
  inputs["--lr"] = text_of(training.learning_rate);
  inputs["--min-lr-ratio"] = text_of(training.least_rate_ratio);
  inputs["--warmup-steps"] = text_of(training.warmup_steps);
  inputs["--beta1"] = text_of(training.beta1);
  inputs["--beta2"] = text_of(training.beta2);
  inputs["AdamW's epsilon"] = text_of(training.epsilon);
  inputs["--weight-decay"] = text_of(training.weight_decay);
  inputs["--clip"] = text_of(training.clip_norm);
  inputs["--balance-loss"] = text_of(training.balance_loss);
  return inputs;
}

RunInputs inputs_of(const RunOptions& options, const Scenario& scenario, Device device,
                    const TokenFile& data, const std::string& data_checksum) {
  RunInputs inputs = hyperparameters_of(options, scenario.plan);
  inputs["--seed"] = text_of(options.training.seed);
  inputs["version"] = SHARDWRIGHT_VERSION;
  inputs["data"] = fmt::format("{} tokens of {} bytes, checksum {}", data.tokens(),
                               data.token_bytes(), data_checksum);
  inputs["--device"] = name_of(device);
  inputs["--resume"] = options.resume ? "given" : "not given";
  inputs["--init-from"] =
      options.init_from.empty()
          ? "not given"
          : fmt::format("weights with the checksum {}", WeightFiles(options.init_from).checksum());
  inputs["--checkpoint-every"] = text_of(options.checkpoint_every);
  inputs["--global-batch"] = options.global_batch;
  inputs["--max-global-batch"] = text_of(options.most_batch);
  inputs["--validation-ratio"] = text_of(options.validation_ratio);
  inputs["--validate-every"] = text_of(options.validate_every);
  inputs["--validation-batches"] = text_of(options.validation_batches);
  inputs["--stop-after"] = text_of(options.stop_after);
  inputs["--rebalance"] = options.rebalance ? "given" : "not given";
  inputs["--async-checkpoints"] = options.async_checkpoints ? "given" : "not given";
  add_plan(scenario, inputs);
  return inputs;
}

}  // namespace shardwright::executor
