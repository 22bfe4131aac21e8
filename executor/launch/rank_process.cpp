#include "executor/launch/rank_process.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.hpp"
#include "core/lowering/lowering.hpp"
#include "executor/checkpoint/run_checkpoints.hpp"
#include "executor/comm/tcp_store.hpp"
#include "executor/data/batch_loader.hpp"
#include "executor/runtime/rank_trainer.hpp"
#include "executor/telemetry/metrics_log.hpp"

namespace shardwright::executor {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown host";
}

// Where this rank finds the others.
class Meeting {
 public:
  Meeting(const RunOptions& options, const LaunchPlace& place, const std::string& token) {
    if (place.world == 1) return;
    if (place.serves_rendezvous)
      server_ = std::make_unique<TcpStoreServer>(place.master_address, place.master_port, token);
    store_ = std::make_unique<TcpStore>(place.master_address, place.master_port, token,
                                        options.timeout());
  }

  // Null in a world of one.
  TcpStore* store() const { return store_.get(); }

 private:
  std::unique_ptr<TcpStoreServer> server_;
  std::unique_ptr<TcpStore> store_;
};

std::unique_ptr<RankBackend> open_backend(Device device, TcpStore* store, const LaunchPlace& place,
                                          const RunOptions& options) {
  const BackendOptions with{options.timeout(), options.share_gpu};
  return device == Device::Cuda ? open_cuda(store, place, with) : open_cpu(store, with);
}

class RankRun {
 public:
  RankRun(const RunOptions& options, const Scenario& scenario, const LaunchPlace& place,
          Device device, const std::string& token)
      : options_(options),
        plan_(scenario.plan),
        rank_(place.rank),
        file_(options.data),
        loader_(file_, scenario.plan, scenario.model.vocab, options.training.seed),
        program_(lower(scenario.model, scenario.plan, scenario.stack)),
        meeting_(options, place, token),
        backend_(open_backend(device, meeting_.store(), place, options)),
        trainer_(scenario.model, program_, place.rank, backend_->kernels(), backend_->opener(),
                 options.training, backend_->queues()),
        checkpoints_(options.checkpoint_folder(), options.keep_checkpoints, scenario.model,
                     trainer_, [](const std::string& text) { fmt::print(stderr, "{}\n", text); }) {
    state_.seed = options.training.seed;
    state_.seq_len = plan_.seq_len;
  }

  void train() {
    if (options_.resume) resume();
    const std::int64_t tokens = plan_.global_batch * plan_.seq_len;
    std::optional<MetricsLog> metrics;
    if (rank_ == 0) metrics.emplace(options_.metrics_file(), tokens, state_.steps);
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
    const auto& wanted = options_.timeline_steps;
    if (std::find(wanted.begin(), wanted.end(), step) == wanted.end())
      return trainer_.step(step, batch);
    StepRecorder recorder(plan_, rank_);
    const StepReport report = trainer_.step(step, batch, &recorder);
    write_timeline(step, recorder.take());
    return report;
  }

  void write_timeline(std::int64_t step, const Timeline& timeline) const {
    const auto file = options_.out / fmt::format("timeline-{}-{}.json", step, rank_);
    std::ofstream stream(file);
    stream << to_json(timeline).dump() << '\n';
    if (!stream.flush()) throw RuntimeFailure(file.string() + " cannot be written");
  }

  const RunOptions& options_;
  const Plan& plan_;
  std::int64_t rank_;
  TokenFile file_;
  BatchLoader loader_;
  Program program_;
  Meeting meeting_;
  std::unique_ptr<RankBackend> backend_;
  RankTrainer trainer_;
  RunCheckpoints checkpoints_;
  RunState state_;
  StepReport last_;
};

}  // namespace

void run_rank(const RunOptions& options, const Scenario& scenario, const LaunchPlace& place,
              Device device, const std::string& token) {
  try {
    RankRun run(options, scenario, place, device, token);
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
