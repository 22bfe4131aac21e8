#include "executor/checkpoint/run_checkpoints.hpp"

#include <utility>

#include "core/base/error.hpp"
#include "executor/checkpoint/parameter_files.hpp"

namespace shardwright::executor {
namespace {

constexpr std::int64_t kNone = -1, kAllDamaged = -2;

}  // namespace

RunCheckpoints::RunCheckpoints(std::filesystem::path folder, std::int64_t keep,
                               const ModelSpec& model, RankTrainer& trainer,
                               std::function<void(const std::string&)> say)
    : folder_(std::move(folder)),
      keep_(keep),
      model_(model),
      trainer_(trainer),
      say_(std::move(say)) {}

bool RunCheckpoints::is_first() const {
  return trainer_.rank() == 0;
}

void RunCheckpoints::together(const std::function<void()>& work) {
  std::string failure;
  try {
    work();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  const double failures = trainer_.sum_over_world(failure.empty() ? 0.0 : 1.0);
  if (failures == 0.0) return;
  throw RuntimeFailure(failure.empty() ? "another rank could not do its part of a checkpoint"
                                       : failure);
}

void RunCheckpoints::save(const RunState& state) {
  together([&] {
    if (is_first()) create_parameter_files(folder_.begin(state.steps), model_);
  });
  together([&] {
    write_parameters(folder_.unfinished(state.steps), model_, trainer_.parameters(),
                     trainer_.place());
  });
  together([&] {
    if (!is_first()) return;
    folder_.finish(state);
    folder_.prune(keep_);
  });
}

std::int64_t RunCheckpoints::newest_whole() const {
  const std::vector<std::int64_t> all = folder_.steps();
  for (const std::int64_t steps : all) {
    const auto damage = folder_.find_damage(steps);
    if (!damage) return steps;
    say_("checkpoint of step " + std::to_string(steps) + " is not used: " + *damage);
  }
  return all.empty() ? kNone : kAllDamaged;
}

std::optional<RunState> RunCheckpoints::load_newest() {
  std::int64_t chosen = 0;
  together([&] {
    if (is_first()) chosen = newest_whole();
  });
  chosen = static_cast<std::int64_t>(trainer_.sum_over_world(static_cast<double>(chosen)));
  if (chosen == kNone) return std::nullopt;
  if (chosen == kAllDamaged) throw RuntimeFailure("no checkpoint is whole");
  RunState state;
  together([&] {
    state = folder_.read_state(chosen);
    read_parameters(folder_.path(chosen), model_, trainer_.parameters());
  });
  return state;
}

}  // namespace shardwright::executor
