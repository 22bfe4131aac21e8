#include "executor/checkpoint/run_checkpoints.hpp"

#include <chrono>
#include <utility>

#include "core/base/error.hpp"
#include "executor/checkpoint/parameter_files.hpp"

namespace shardwright::executor {
namespace {

constexpr const char* kNoneWhole = "no checkpoint is whole";
constexpr std::int64_t kNone = -1, kAllDamaged = -2;

}  // namespace

RunCheckpoints::RunCheckpoints(const CheckpointOptions& options, const ModelSpec& model,
                               RankTrainer& trainer, Store& store,
                               std::function<void(const std::string&)> say)
    : folder_(options.folder),
      in_background_(options.in_background),
      model_(model),
      trainer_(trainer),
      say_(std::move(say)),
      writer_(folder_, options.keep, model, store, trainer.rank(), trainer.world(),
              options.write_limit, options.check_others) {}

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
  const auto start = std::chrono::steady_clock::now();
  finish();
  copy_parameters(trainer_.parameters(), trainer_.place(), copy_);
  writer_.start(state, copy_);
  if (!in_background_) {
    finish();
    copy_.clear();
  }
  ++times_.count;
  times_.stalled_s +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void RunCheckpoints::finish() {
  together([&] { writer_.wait(); });
}

std::int64_t RunCheckpoints::newest_whole() {
  const std::vector<std::int64_t> all = folder_.steps();
  for (const std::int64_t steps : all) {
    const auto damage = folder_.find_damage(steps);
    if (!damage) return steps;
    say_("checkpoint of step " + std::to_string(steps) + " is not used: " + *damage);
  }
  return all.empty() ? kNone : kAllDamaged;
}

void RunCheckpoints::check_same(std::int64_t steps) {
  constexpr int kUnused = 12;  // bits beyond those that the sum of ranks, in fp64, keeps
  const auto own = static_cast<double>(folder_.sum(steps) >> kUnused);
  const double first = trainer_.sum_over_world(is_first() ? own : 0.0);
  together([&] {
    if (own == first) return;
    throw RuntimeFailure(folder_.path(steps).string() +
                         " is not the checkpoint that rank 0 goes on from; --out must name one "
                         "folder for all ranks");
  });
}

std::optional<RunState> RunCheckpoints::load_newest(
    const std::function<void(const RunState&)>& accept) {
  std::int64_t chosen = 0;
  together([&] {
    if (!is_first()) return;
    chosen = newest_whole();
    // Before the others know: who has launched the ranks stops all when the first one ends.
    if (chosen == kAllDamaged) say_(kNoneWhole);
  });
  chosen = static_cast<std::int64_t>(trainer_.sum_over_world(static_cast<double>(chosen)));
  if (chosen == kNone) return std::nullopt;
  if (chosen == kAllDamaged) throw SaidElsewhere(kNoneWhole);
  RunState state;
  together([&] { state = folder_.read_state(chosen); });
  check_same(chosen);
  accept(state);
  together([&] { read_parameters(folder_.path(chosen), model_, trainer_.parameters()); });
  return state;
}

}  // namespace shardwright::executor
