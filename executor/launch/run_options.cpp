#include "executor/launch/run_options.hpp"

#include <CLI/CLI.hpp>

namespace shardwright::executor {
namespace {

constexpr double kMostSeconds = 1e6;

CLI::Range at_least(double least) {
  return {least, 1e12};
}

}  // namespace

std::vector<std::int64_t> RunOptions::recorded_steps() const {
  if (!timeline_steps.empty()) return timeline_steps;
  constexpr std::int64_t kRecorded = 5;
  std::vector<std::int64_t> steps;
  const std::int64_t half = training.steps / 2;
  for (std::int64_t i = 0; i < kRecorded; ++i) {
    const std::int64_t step = half + i * (training.steps - half) / kRecorded;
    if (steps.empty() || step > steps.back()) steps.push_back(step);
  }
  return steps;
}

CheckpointOptions RunOptions::checkpoints() const {
  // A checkpoint is large; the disk may take longer than a rank that answers.
  constexpr int kTimeouts = 30;
  return {checkpoint_folder(), keep_checkpoints, async_checkpoints, kTimeouts * timeout()};
}

void add_run_options(CLI::App& app, RunOptions& options) {
  TrainingOptions& training = options.training;
  app.add_option("PLAN", options.plan, "Plan file, as `shardwright plan --out` writes it")
      ->required();
  app.add_option("--data", options.data,
                 "Corpus: text as bytes, or tokens of llm.c, nanoGPT or Megatron in NAME.bin")
      ->required()
      ->type_name("FILE");
  app.add_option("--out", options.out, "Folder of metrics and timelines")
      ->required()
      ->type_name("FOLDER");
  app.add_option("--device", options.device,
                 "Where the ranks compute; auto: on GPUs if the plan is bf16 and there are any")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}));
  app.add_flag("--share-gpu", options.share_gpu,
               "Let ranks share a GPU: to try plans out, not to time them");
  app.add_option("--steps", training.steps, "Steps to train")->required()->check(at_least(1));
  app.add_option("--seed", training.seed, "Of initial values and the order of samples");
  app.add_option("--lr", training.learning_rate, "Learning rate at its peak")->check(at_least(0.0));
  app.add_option("--min-lr-ratio", training.least_rate_ratio, "Of the peak, at the last step")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--warmup-steps", training.warmup_steps, "Until the peak")->check(at_least(0));
  app.add_option("--beta1", training.beta1, "AdamW")->check(CLI::Range(0.0, 0.999999));
  app.add_option("--beta2", training.beta2, "AdamW")->check(CLI::Range(0.0, 0.999999));
  app.add_option("--weight-decay", training.weight_decay, "Of matrices")->check(at_least(0.0));
  app.add_option("--clip", training.clip_norm, "Norm that gradients are scaled down to; 0: never")
      ->check(at_least(0.0));
  app.add_option("--timeline-steps", options.timeline_steps,
                 "Steps (from 0) whose ops are recorded: 10,11; default: five of the second half")
      ->delimiter(',')
      ->check(at_least(0))
      ->type_name("LIST");
  app.add_option("--checkpoint-every", options.checkpoint_every,
                 "Steps between checkpoints in OUT/checkpoints; 0: none")
      ->check(at_least(0));
  app.add_option("--keep", options.keep_checkpoints, "Checkpoints that are kept")
      ->check(at_least(1));
  app.add_flag("--async-checkpoints", options.async_checkpoints,
               "Copy the state, and write it while training goes on");
  app.add_option("--init-from", options.init_from,
                 "Weights to begin with: a folder or file of safetensors with Hugging Face's names")
      ->type_name("FOLDER|FILE");
  app.add_flag("--resume", options.resume, "Go on from the newest checkpoint, if there is one")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--restarts", options.restarts,
                 "Times that failed ranks are started again, from the newest checkpoint")
      ->check(at_least(0));
  app.add_option("--planner", options.planner,
                 "The command shardwright, which plans for --elastic; `shardwright run` says it")
      ->type_name("PROGRAM");
  app.add_flag("--elastic", options.elastic,
               "Restart without the ranks that died or froze, under a plan for those that are left")
      ->needs("--restarts")
      ->needs("--planner");
  app.add_option("--continue-under", options.continued_plan,
                 "Plan to go on under in place of PLAN; --elastic says it")
      ->type_name("FILE");
  app.add_option("--timeout", options.timeout_s, "Seconds until a silent rank has failed")
      ->check(CLI::Range(0.1, kMostSeconds));
  app.add_flag("--force", options.force, "Write over an earlier run's files");
  app.add_flag("--no-progress", options.no_progress, "No progress line on the terminal");
}

}  // namespace shardwright::executor
