#include "executor/checkpoint/resumed_state.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/error.hpp"

namespace shardwright::executor {

void check_continues(const RunState& found, const RunState& own) {
  if (!found.model_checksum.empty() && found.model_checksum != own.model_checksum) {
    throw InputError("--resume", {{"", "a checkpoint of another model, " + found.model,
                                   "the model of the plan, " + own.model}});
  }
  if (found.seed == own.seed && found.seq_len == own.seq_len) return;
  const auto run = [](const RunState& state) {
    return fmt::format("--seed {} and sequences of {} tokens", state.seed, state.seq_len);
  };
  throw InputError("--resume", {{"", "a checkpoint of a run with " + run(found), run(own)}});
}

std::vector<std::string> changes_since(const RunState& found, const RunState& own,
                                       const std::string& data_file) {
  std::vector<std::string> changes;
  if (found.data_tokens != 0 && found.data_tokens != own.data_tokens) {
    changes.push_back(
        fmt::format("{} has {} tokens, but earlier steps were trained on data with {}", data_file,
                    own.data_tokens, found.data_tokens));
  } else if (!found.data_checksum.empty() && found.data_checksum != own.data_checksum) {
    changes.push_back(data_file + " has other tokens than the data of earlier steps");
  }
  std::vector<std::string> options;
  for (const auto& [name, value] : own.options) {
    // Checkpoints of earlier versions have none.
    const auto before = found.options.find(name);
    if (before != found.options.end() && before->second != value)
      options.push_back(fmt::format("{} {} in place of {}", name, value, before->second));
  }
  if (!options.empty()) {
    changes.push_back(fmt::format("from step {} on the run has other hyperparameters: {}",
                                  found.steps, fmt::join(options, ", ")));
  }
  return changes;
}

}  // namespace shardwright::executor
