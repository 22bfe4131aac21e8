// The cost of recording a step: steps with and without a recorder in turn, in one run of one rank
// on the CPU. Prints the ops of a step, the median step of both kinds and the median of the
// differences of neighbours; writing the file, which comes after the step, is timed by itself.
//
//   recording_cost [PAIRS [HIDDEN [SEQ_LEN]]]
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "core/lowering/lowering.hpp"
#include "core/spec/profile_library.hpp"
#include "executor/kernels/kernels.hpp"
#include "executor/runtime/rank_trainer.hpp"
#include "executor/telemetry/run_files.hpp"

namespace {

using namespace shardwright;
using namespace shardwright::executor;

constexpr std::int64_t kWarmUp = 5, kVocabulary = 256;

ModelSpec llama(std::int64_t hidden) {
  ModelSpec model;
  model.name = "recorded-llama";
  model.layers = 4;
  model.hidden = hidden;
  model.vocab = kVocabulary;
  model.attention.heads = model.attention.kv_heads = 4;
  model.attention.head_dim = hidden / 4;
  model.mlp.ffn_hidden = 3 * hidden;
  return model;
}

Plan plan_of(std::int64_t seq_len) {
  Plan plan;
  plan.zero_stage = 0;
  plan.micro_batch = 1;
  plan.global_batch = 2;
  plan.seq_len = seq_len;
  plan.precision = Precision::Fp32;
  return plan;
}

Batch batch_of(const Plan& plan) {
  Batch batch;
  for (std::int64_t i = 0; i < plan.global_batch * plan.seq_len; ++i) {
    batch.tokens.push_back(static_cast<std::int32_t>(i * i % kVocabulary));
    batch.targets.push_back(static_cast<std::int32_t>((i * i + 1) % kVocabulary));
  }
  return batch;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t pairs = argc > 1 ? std::atol(argv[1]) : 200;
  const ModelSpec model = llama(argc > 2 ? std::atol(argv[2]) : 128);
  const Plan plan = plan_of(argc > 3 ? std::atol(argv[3]) : 128);
  const Program program = lower(model, plan, load_stack("shardwright"));
  const auto kernels = make_cpu_kernels();
  RankTrainer trainer(model, program, 0, *kernels, {}, {});
  trainer.set_initial_parameters();
  const Batch batch = batch_of(plan);
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("recording.{}", getpid());
  std::filesystem::create_directories(folder);
  std::vector<double> plain, recorded, more, written;
  for (std::int64_t step = 0; step < 2 * pairs + kWarmUp; ++step) {
    const bool records = step % 2 == 1;
    StepRecorder recorder(plan, 0);
    const double time = trainer.step(step, batch, records ? &recorder : nullptr).seconds;
    if (step < kWarmUp) continue;
    (records ? recorded : plain).push_back(time);
    if (!records) continue;
    if (!plain.empty()) more.push_back(time / plain.back() - 1.0);
    const auto start = std::chrono::steady_clock::now();
    write_timeline(folder, step, 0, recorder.take());
    written.push_back(seconds_since(start));
  }
  std::filesystem::remove_all(folder);
  fmt::print(
      "{} ops a step: {:.3f} ms, recorded {:.3f} ms ({:+.2f} % in the median of {} pairs); "
      "writing the file {:.3f} ms\n",
      program.stages.front().ops, 1e3 * median(plain), 1e3 * median(recorded), 100.0 * median(more),
      more.size(), 1e3 * median(written));
}
