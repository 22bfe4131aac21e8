#include "executor/checkpoint/run_checkpoints.hpp"

#include <chrono>
#include <utility>

#include "core/base/error.hpp"
#include "executor/checkpoint/parameter_files.hpp"

namespace shardwright::executor {
namespace {

constexpr const char* kNoneIntact = "no checkpoint is intact";
constexpr std::int64_t kNone = -1, kAllDamaged = -2;

}  // namespace

RunCheckpoints::RunCheckpoints(const CheckpointOptions& options, const ModelSpec& model,
                               RankTrainer& trainer, Store& store,
                               std::function<void(const std::string&)> warn)
    : folder_(options.folder),
      in_background_(options.in_background),
      model_(model),
      trainer_(trainer),
      warn_(std::move(warn)),
      writer_(folder_, options.keep, model, store, trainer.rank(), trainer.world(),
              options.write_limit, options.check_others) {}

bool RunCheckpoints::is_first() const {
  return trainer_.rank() == 0;
}

void RunCheckpoints::run_on_all(const std::function<void()>& work) {
  std::string failure;
  try {
    work();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  const double failures = trainer_.sum_over_world(failure.empty() ? 0.0 : 1.0);
  if (failures == 0.0) return;
  throw RuntimeFailure(failure.empty() ? "another rank failed to save or load a checkpoint"
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
  run_on_all([&] { writer_.wait(); });
}

std::int64_t RunCheckpoints::newest_intact() {
  const std::vector<std::int64_t> all = folder_.steps();
  for (const std::int64_t steps : all) {
    const auto damage = folder_.find_damage(steps);
    if (!damage) return steps;
    warn_("skipping the damaged checkpoint of step " + std::to_string(steps) + ": " + *damage);
  }
  return all.empty() ? kNone : kAllDamaged;
}

void RunCheckpoints::check_same(std::int64_t steps) {
  // The sum over ranks in fp64 keeps 52 bits.
  constexpr int kUnused = 12;
  const auto own = static_cast<double>(folder_.checksum(steps) >> kUnused);
  const double first = trainer_.sum_over_world(is_first() ? own : 0.0);
  run_on_all([&] {
    if (own == first) return;
    throw RuntimeFailure(folder_.path(steps).string() +
                         " is not the checkpoint that rank 0 resumes from; --out must name one "
                         "folder for all ranks");
  });
}

std::optional<RunState> RunCheckpoints::load_newest(
    const std::function<void(const RunState&)>& accept) {
  std::int64_t chosen = 0;
  run_on_all([&] {
    if (!is_first()) return;
    chosen = newest_intact();
    // Rank 0 reports this before the others learn of it: a launcher may stop all ranks when the
    // first one exits.
    if (chosen == kAllDamaged) warn_(kNoneIntact);
  });
  chosen = static_cast<std::int64_t>(trainer_.sum_over_world(static_cast<double>(chosen)));
  if (chosen == kNone) return std::nullopt;
  if (chosen == kAllDamaged) throw ReportedElsewhere(kNoneIntact);
  RunState state;
  run_on_all([&] { state = folder_.read_state(chosen); });
  check_same(chosen);
  accept(state);
  run_on_all([&] { read_parameters(folder_.path(chosen), model_, trainer_.parameters()); });
  return state;
}

}  // namespace shardwright::executor
