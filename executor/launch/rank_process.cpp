#include "executor/launch/rank_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/error.hpp"
#include "core/lowering/lowering.hpp"
#include "executor/checkpoint/run_checkpoints.hpp"
#include "executor/data/batch_loader.hpp"
#include "executor/kernels/cpu/cpu_kernels.hpp"
#include "executor/launch/meeting.hpp"
#include "executor/runtime/rank_trainer.hpp"
#include "executor/telemetry/host_name.hpp"
#include "executor/telemetry/metrics_log.hpp"
#include "executor/telemetry/run_files.hpp"

namespace shardwright::executor {
namespace {

class RankRun {
 public:
  RankRun(const RunOptions& options, const Scenario& scenario, const LaunchPlace& place,
          const std::string& token)
      : options_(options),
        scenario_(scenario),
        plan_(scenario.plan),
        rank_(place.rank),
        recorded_(options.recorded_steps()),
        file_(options.data),
        loader_(file_, scenario.plan, scenario.model.vocab, options.training.seed),
        program_(lower(scenario.model, scenario.plan, scenario.stack)),
        meeting_(place, token, options.timeout()),
        trainer_(scenario.model, program_, place.rank, kernels_, meeting_.opener(),
                 options.training),
        checkpoints_(options.checkpoint_folder(), options.keep_checkpoints, scenario.model,
                     trainer_, [](const std::string& text) { fmt::print(stderr, "{}\n", text); }) {
    state_.seed = options.training.seed;
    state_.seq_len = plan_.seq_len;
  }

  void train() {
    if (options_.resume) resume();
    if (rank_ == 0) write_plan(options_.out, scenario_);
    std::optional<MetricsLog> metrics;
    if (rank_ == 0) metrics.emplace(options_.metrics_file(), figures_of(scenario_), state_.steps);
    RunProgress progress(rank_ == 0 && !options_.no_progress, options_.training.steps);
    while (state_.steps < options_.training.steps) {
      const std::int64_t step = state_.steps;
      const StepReport report = run_step(step);
      if (metrics) metrics->write(report, Bytes(static_cast<double>(trainer_.peak_tensor_bytes())));
      progress.show(report);
      if (!std::isfinite(report.loss))
        throw RuntimeFailure(fmt::format("the loss of step {} is {}", step, report.loss));
      last_ = report;
      ++state_.steps;
      state_.samples += static_cast<std::uint64_t>(plan_.global_batch);
      const std::int64_t every = options_.checkpoint_every;
      if (every > 0 && state_.steps % every == 0) checkpoints_.save(state_);
    }
    if (metrics) metrics->finish();
  }

  const StepReport& last() const { return last_; }

 private:
  void resume() {
    const std::optional<RunState> found = checkpoints_.load_newest();
    if (!found) return;
    const RunState expected{found->steps, found->samples, options_.training.seed, plan_.seq_len};
    if (*found != expected) {
      throw InputError(
          "--resume",
          {{"",
            fmt::format("a run with --seed {} and sequences of {}", found->seed, found->seq_len),
            fmt::format("--seed {} and {} as before", expected.seed, expected.seq_len)}});
    }
    state_ = *found;
  }

  StepReport run_step(std::int64_t step) {
    const Batch batch = loader_.load(state_.samples, trainer_.place()[Axis::Data]);
    if (std::find(recorded_.begin(), recorded_.end(), step) == recorded_.end())
      return trainer_.step(step, batch);
    StepRecorder recorder(plan_, rank_);
    const StepReport report = trainer_.step(step, batch, &recorder);
    write_timeline(options_.out, step, rank_, recorder.take());
    return report;
  }

  const RunOptions& options_;
  const Scenario& scenario_;
  const Plan& plan_;
  std::int64_t rank_;
  std::vector<std::int64_t> recorded_;  // steps
  TokenFile file_;
  BatchLoader loader_;
  Program program_;
  CpuKernels<float> kernels_;
  Meeting meeting_;
  RankTrainer trainer_;
  RunCheckpoints checkpoints_;
  RunState state_;
  StepReport last_;
};

}  // namespace

void run_rank(const RunOptions& options, const Scenario& scenario, const LaunchPlace& place,
              const std::string& token) {
  try {
    RankRun run(options, scenario, place, token);
    run.train();
    if (place.rank != 0) return;
    fmt::print("{} steps, loss {:.4f}, {}\n", options.training.steps, run.last().loss,
               (options.out / "metrics.jsonl").string());
  } catch (const InputError&) {
    throw;
  } catch (const std::exception& error) {
    throw RuntimeFailure(fmt::format("rank {} on {}: {}", place.rank, host_name(), error.what()));
  }
}

}  // namespace shardwright::executor
