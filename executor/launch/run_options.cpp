#include "executor/launch/run_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <memory>
#include <set>
#include <sstream>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/base/error.hpp"
#include "core/spec/this_machine.hpp"

namespace shardwright::executor {
namespace {

constexpr double kMaxSeconds = 1e6;

// Folds what the help says of options to 80 columns.
class FoldedHelp : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::size_t most = 80 - get_column_width();
    std::istringstream words(CLI::Formatter::make_option_desc(option));
    std::string folded;
    std::size_t width = 0;
    for (std::string word; words >> word; width += word.size() + 1) {
      const bool fits = width + word.size() <= most;
      if (!folded.empty()) folded += fits ? ' ' : '\n';
      if (!fits) width = 0;
      folded += word;
    }
    return folded;
  }
};

// Shows the initial value as the default.
template <class Value>
CLI::Option* add_number(CLI::App& app, const std::string& name, Value& value,
                        const std::string& help, double least,
                        std::optional<double> most = std::nullopt) {
  CLI::Option* option = app.add_option(name, value, help);
  if constexpr (std::is_integral_v<Value>) {
    option->check(integer_from(static_cast<std::int64_t>(least)))->type_name("N");
  } else {
    option->check(number_from(least, most))->type_name("NUMBER");
  }
  return option->capture_default_str();
}

void add_inputs(CLI::App& app, RunOptions& options) {
  app.add_option("PLAN", options.plan, "Plan file, as `shardwright plan --out` writes it")
      ->required()
      ->type_name("FILE");
  app.add_option(
         "--data", options.data,
         "Corpus: text as bytes; tokens of llm.c, nanoGPT or Megatron in NAME.bin; or as 16 or 32 "
         "bits each in NAME.u16 or NAME.u32")
      ->required()
      ->type_name("FILE");
  app.add_option("--out", options.out, "Folder of metrics and timelines")
      ->required()
      ->type_name("FOLDER");
  app.add_option("--steps", options.training.steps, "Steps to train")
      ->check(integer_from(1))
      ->required()
      ->type_name("N");
  add_device_options(app, options.device, options.share_gpu,
                     "on GPUs if the plan is bf16 and there are any");
  app.add_option_function<std::string>(
         "--timeline-steps",
         [&options](const std::string& list) { options.timeline_steps = read_integers(list); },
         "Steps (from 0) whose ops are recorded: 10,11; default: five of the second half")
      ->check(integers_from(0))
      ->type_name("LIST");
  app.add_flag("--force", options.force, "Overwrite an earlier run's files");
  app.add_flag("--no-progress", options.no_progress, "No progress line on the terminal");
  app.add_flag("--verbose", options.verbose,
               "Log steps, connections and processes with time, rank and host");
}

void add_training(CLI::App& app, RunOptions& options) {
  constexpr double kMaxMomentum = 0.999999;
  TrainingOptions& training = options.training;
  app.option_defaults()->group("Training");
  app.add_option("--seed", training.seed, "Seed of initial values and the order of samples")
      ->check(unsigned_integer())
      ->type_name("N")
      ->capture_default_str();
  add_number(app, "--lr", training.learning_rate, "Learning rate at its peak", 0);
  add_number(app, "--min-lr-ratio", training.least_rate_ratio,
             "Rate at the last step relative to the peak", 0, 1);
  add_number(app, "--warmup-steps", training.warmup_steps, "Steps until the peak; at most --steps",
             0)
      ->each([&options](const std::string&) { options.warmup_given = true; });
  add_number(app, "--beta1", training.beta1, "AdamW's first moment", 0, kMaxMomentum);
  add_number(app, "--beta2", training.beta2, "AdamW's second moment", 0, kMaxMomentum);
  add_number(app, "--weight-decay", training.weight_decay, "Weight decay of matrices", 0);
  add_number(app, "--clip", training.clip_norm, "Norm that gradients are scaled down to; 0: never",
             0);
  app.add_option("--global-batch", options.global_batch,
                 "auto: the plan's batch doubles while the gradient noise scale is twice as large")
      ->check(CLI::IsMember({"plan", kAutomaticBatch}))
      ->type_name("plan|auto")
      ->capture_default_str();
  add_number(app, "--max-global-batch", options.most_batch,
             "With --global-batch auto: the largest batch in sequences", 0);
  add_number(app, "--balance-loss", training.balance_loss,
             "Weight of the loss that balances experts in each sequence; 0: none", 0);
}

void add_validation(CLI::App& app, RunOptions& options) {
  constexpr double kMostHeldOut = 0.5;
  app.option_defaults()->group("Validation");
  CLI::Option* ratio = add_number(
      app, "--validation-ratio", options.validation_ratio,
      "Share of the corpus, at its end, that is held out from training; 0: none", 0, kMostHeldOut);
  add_number(app, "--validate-every", options.validate_every,
             "Steps between two validations; 0: only after the last step", 0)
      ->needs(ratio);
  add_number(app, "--validation-batches", options.validation_batches,
             "Batches of a validation, if as many are held out", 1)
      ->needs(ratio);
}

void add_checkpoints(CLI::App& app, RunOptions& options) {
  app.option_defaults()->group("Checkpoints");
  add_number(app, "--checkpoint-every", options.checkpoint_every,
             "Steps between checkpoints in OUT/checkpoints; 0: none", 0);
  add_number(app, "--keep", options.keep_checkpoints, "Checkpoints that are kept", 1)
      ->needs("--checkpoint-every");
  add_number(app, "--stop-after", options.stop_after,
             "Stop after this step with a checkpoint, on the learning rate of --steps; 0: do not",
             0);
  app.add_flag("--async-checkpoints", options.async_checkpoints,
               "Copy the state and write it while training continues")
      ->needs("--checkpoint-every");
  app.add_option("--init-from", options.init_from,
                 "Initial weights: a folder or file of safetensors with Hugging Face's names")
      ->type_name("FOLDER|FILE");
  app.add_flag("--resume", options.resume, "Resume from the newest checkpoint, if there is one")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void add_failures(CLI::App& app, RunOptions& options) {
  app.option_defaults()->group("Failures");
  add_number(app, "--timeout", options.timeout_s, "Seconds until a silent rank has failed", 0.1,
             kMaxSeconds);
  add_number(app, "--restarts", options.restarts,
             "Restarts after failures, from the newest checkpoint", 0);
  app.add_flag("--elastic", options.elastic,
               "Restart without the ranks that died or froze, under a plan for those that are left")
      ->needs("--restarts");
  app.add_flag("--rebalance", options.rebalance,
               "Find ranks that become slower than others, and go on under a plan that gives them "
               "less work where that pays")
      ->excludes("--elastic");
}

// Options that Shardwright's own programs pass to each other; --help omits them.
void add_internals(CLI::App& app, RunOptions& options) {
  app.option_defaults()->group("");
  app.add_option("--planner", options.planner,
                 "The command shardwright, which plans for --elastic and --rebalance; `shardwright "
                 "run` sets it");
  app.get_option("--elastic")->needs("--planner");
  app.get_option("--rebalance")->needs("--planner");
  app.add_option("--continue-under", options.continued_plan,
                 "Plan to continue with instead of PLAN; the launcher sets it");
  app.add_option("--slowdowns", options.slowdowns,
                 "Slowdown of each rank under that plan; --rebalance sets it")
      ->delimiter(',');
  app.add_flag("--local", options.local,
               "Start the ranks here, even under another launcher; `shardwright run` sets it");
}

// Returns the values that occur more than once, ascending.
std::set<std::int64_t> repeated(const std::vector<std::int64_t>& values) {
  std::set<std::int64_t> seen, several;
  for (const std::int64_t value : values) {
    if (!seen.insert(value).second) several.insert(value);
  }
  return several;
}

// A double represents it exactly, so that no conversion overflows.
constexpr std::int64_t kMaxOfAll = 1'000'000'000'000'000;

template <class Integer>
std::optional<Integer> integer_in(std::string_view text) {
  Integer value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end ? std::optional(value) : std::nullopt;
}

std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  for (std::size_t comma = 0; (comma = list.find(',')) != std::string_view::npos;
       list.remove_prefix(comma + 1))
    parts.push_back(list.substr(0, comma));
  parts.push_back(list);
  return parts;
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

CheckpointOptions RunOptions::checkpoints(std::function<void()> check_others) const {
  // A large checkpoint may take far longer than the answer of a rank.
  constexpr int kTimeouts = 30;
  return {checkpoint_folder(), keep_checkpoints, async_checkpoints, kTimeouts * timeout(),
          std::move(check_others)};
}

void add_device_options(CLI::App& app, std::string& device, bool& share_gpu,
                        const std::string& automatic) {
  app.add_option("--device", device, "cpu, cuda, or auto: " + automatic)
      ->check(device_problem)
      ->type_name("DEVICE")
      ->capture_default_str();
  app.add_flag("--share-gpu", share_gpu,
               "Let ranks share a GPU: to try plans out, not to time them");
}

void add_run_options(CLI::App& app, RunOptions& options) {
  app.formatter(std::make_shared<FoldedHelp>());
  add_inputs(app, options);
  add_training(app, options);
  add_validation(app, options);
  add_checkpoints(app, options);
  add_failures(app, options);
  add_internals(app, options);
}

void check_run_options(const RunOptions& options) {
  ProblemList problems("shardwright run");
  for (const std::int64_t step : options.timeline_steps) {
    if (step < options.training.steps) continue;
    problems.add("--timeline-steps", std::to_string(step),
                 fmt::format("steps from 0 to {}, with --steps {}", options.training.steps - 1,
                             options.training.steps));
  }
  if (options.stop_after > options.training.steps) {
    problems.add("--stop-after", std::to_string(options.stop_after),
                 fmt::format("at most the {} of --steps", options.training.steps));
  }
  if (options.grows_batch() != (options.most_batch > 0)) {
    problems.add("--max-global-batch", options.grows_batch() ? "nothing" : "no --global-batch auto",
                 "both: the batch grows up to a largest one, in sequences");
  }
  if (options.grows_batch() && options.rebalance)
    problems.add("--rebalance", "--global-batch auto",
                 "one of the two: replicas with unequal shares do not measure a noise scale");
  if (options.validate_every > 0 && options.validation_ratio <= 0.0)
    problems.add("--validate-every", std::to_string(options.validate_every),
                 "a --validation-ratio above 0 with it");
  if (options.warmup_given && options.training.warmup_steps > options.training.steps) {
    problems.add("--warmup-steps", std::to_string(options.training.warmup_steps),
                 fmt::format("at most the {} of --steps: the learning rate would not reach --lr",
                             options.training.steps));
  }
  problems.throw_if_any();
}

std::vector<std::string> remarks_on(const RunOptions& options) {
  std::vector<std::string> remarks;
  const TrainingOptions& training = options.training;
  if (!options.warmup_given && training.warmup_steps > training.steps) {
    remarks.push_back(
        fmt::format("the learning rate does not reach --lr in these {} steps: it rises over {} "
                    "steps (--warmup-steps)",
                    training.steps, training.warmup_steps));
  }
  if (const auto several = repeated(options.timeline_steps); !several.empty()) {
    remarks.push_back(fmt::format("--timeline-steps repeats {}: each step is recorded once",
                                  fmt::join(several, ", ")));
  }
  if (options.async_checkpoints && options.checkpoint_every == 0)
    remarks.emplace_back("--async-checkpoints has no effect: --checkpoint-every is 0");
  return remarks;
}

CLI::Validator integer_from(std::int64_t least, std::optional<std::int64_t> most) {
  const auto check = [least, most](const std::string& text) {
    const auto value = integer_in<std::int64_t>(text);
    if (value && *value >= least && *value <= most.value_or(kMaxOfAll)) return std::string();
    const bool too_many = value && *value > least && !most;
    return fmt::format("found {}; expected {}", text,
                       too_many ? fmt::format("at most {}", kMaxOfAll)
                       : most   ? fmt::format("an integer from {} to {}", least, *most)
                                : fmt::format("an integer of at least {}", least));
  };
  return {check, ""};
}

CLI::Validator integers_from(std::int64_t least) {
  const auto check = [least](const std::string& list) {
    for (const std::string_view part : parts_of(list)) {
      const auto value = integer_in<std::int64_t>(part);
      if (value && *value >= least && *value <= kMaxOfAll) continue;
      return fmt::format("found \"{}\" in {}; expected integers of at least {} with commas between",
                         part, list, least);
    }
    return std::string();
  };
  return {check, ""};
}

std::vector<std::int64_t> read_integers(const std::string& list) {
  std::vector<std::int64_t> values;
  for (const std::string_view part : parts_of(list))
    values.push_back(integer_in<std::int64_t>(part).value_or(0));
  return values;
}

CLI::Validator number_from(double least, std::optional<double> most) {
  constexpr auto kMax = static_cast<double>(kMaxOfAll);
  const std::string expected = most ? fmt::format("a number from {} to {}", least, *most)
                                    : fmt::format("a number of at least {}", least);
  const auto check = [least, most, limit = most.value_or(kMax), expected](const std::string& text) {
    double value = 0.0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    const bool holds = read.ec == std::errc() && read.ptr == end && std::isfinite(value) &&
                       value >= least && value <= limit;
    if (holds) return std::string();
    return fmt::format("found {}; expected {}", text,
                       !most && value > limit ? fmt::format("at most {}", limit) : expected);
  };
  return {check, ""};
}

CLI::Validator unsigned_integer() {
  const auto check = [](const std::string& text) {
    if (integer_in<std::uint64_t>(text)) return std::string();
    return fmt::format("found {}; expected an integer from 0 to 2^64 - 1", text);
  };
  return {check, ""};
}

}  // namespace shardwright::executor
