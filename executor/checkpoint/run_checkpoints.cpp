#include "executor/checkpoint/run_checkpoints.hpp"

#include <fmt/format.h>

#include <utility>

namespace shardwright::executor {
namespace {

constexpr const char* kNoneIntact = "no checkpoint is intact";
constexpr std::int64_t kNone = -1, kAllDamaged = -2;
constexpr std::chrono::milliseconds kCheckpointPollInterval{5};
constexpr const char* kCreatedKey = "checkpoint.created";
constexpr const char* kCompleteKey = "checkpoint.complete";

std::string part_key(std::int64_t rank) {
  return fmt::format("checkpoint.part.{}", rank);
}

}  // namespace

RunCheckpoints::RunCheckpoints(const CheckpointOptions& options, const ModelSpec& model,
                               RankTrainer& trainer, Store& store,
                               std::function<void(const std::string&)> warn)
    : options_(options),
      folder_(options.folder),
      model_(model),
      trainer_(trainer),
      store_(store),
      warn_(std::move(warn)) {}

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
  copy_parameters(trainer_.parameters(), copy_);
  deadline_ = std::chrono::steady_clock::now() + options_.write_limit;
  thread_ = std::jthread([this, state](const std::stop_token& stop) {
    try {
      write(state, stop);
    } catch (...) {
      failure_ = std::current_exception();
    }
  });
  if (!options_.in_background) {
    finish();
    copy_.clear();
  }
  ++times_.count;
  times_.stalled_s +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void RunCheckpoints::finish() {
  run_on_all([&] {
    if (thread_.joinable()) thread_.join();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  });
}

void RunCheckpoints::report(const std::string& key, std::int64_t steps,
                            const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    store_.set(key, fmt::format("{}: {}", steps, error.what()));
    throw;
  }
  store_.set(key, fmt::format("{}", steps));
}

void RunCheckpoints::wait_for(const std::string& key, std::int64_t steps,
                              const std::stop_token& stop) {
  const std::string wanted = fmt::format("{}", steps);
  while (!stop.stop_requested()) {
    const std::string value = store_.find(key).value_or("");
    if (value == wanted) return;
    if (value.rfind(wanted + ": ", 0) == 0) throw RuntimeFailure(value.substr(wanted.size() + 2));
    if (options_.check_others) options_.check_others();
    if (std::chrono::steady_clock::now() > deadline_) {
      throw RuntimeFailure(
          fmt::format("the checkpoint of step {} is not complete after {} s: no {}", steps,
                      options_.write_limit.count() / 1000, key));
    }
    std::this_thread::sleep_for(kCheckpointPollInterval);
  }
  throw RuntimeFailure(fmt::format("the checkpoint of step {} was abandoned", steps));
}

void RunCheckpoints::write(const RunState& state, const std::stop_token& stop) {
  if (!is_first()) {
    wait_for(kCreatedKey, state.steps, stop);
    report(part_key(trainer_.rank()), state.steps,
           [&] { write_parameters(folder_.unfinished(state.steps), model_, copy_); });
    return wait_for(kCompleteKey, state.steps, stop);
  }
  report(kCompleteKey, state.steps, [&] {
    write_parts(state, stop);
    folder_.finish(state);
    folder_.prune(options_.keep);
  });
}

void RunCheckpoints::write_parts(const RunState& state, const std::stop_token& stop) {
  report(kCreatedKey, state.steps,
         [&] { create_parameter_files(folder_.begin(state.steps), model_); });
  write_parameters(folder_.unfinished(state.steps), model_, copy_);
  for (std::int64_t rank = 1; rank < trainer_.world(); ++rank)
    wait_for(part_key(rank), state.steps, stop);
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
