#include "sim/validation/tuned_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "core/spec/plan_check.hpp"
#include "sim/step/step_estimate.hpp"
#include "sim/validation/row_batch.hpp"
#include "sim/validation/row_notes.hpp"
#include "sim/validation/row_plan.hpp"
#include "sim/validation/row_words.hpp"
#include "sim/validation/stack_habits.hpp"
#include "sim/validation/stack_name.hpp"

namespace shardwright::sim {
namespace {

constexpr std::int64_t kMostSequences = 16;  // of a micro-batch that is tried
// Chunks of a stage that are tried: of the interleaved pipelines that sources state, nearly all
// have no more, whatever their layers divide into.
constexpr std::int64_t kMostChunks = 12;

struct OpenChoices {
  bool micro_batch, virtual_stages, recomputation, sharding;
  bool batch;        // of as many microbatches, whatever their size
  bool interleaved;  // at least two virtual stages
};

bool names_interleaved(const TrainingRow& row) {
  const std::string& text = row.plan.schedule;
  return text.empty() ? notes_say_interleaved(row.notes)
                      : says_any(text, {"interleav", "virtual", "vpp"});
}

OpenChoices open_choices(const TrainingRow& row, const Scenario& scenario) {
  const bool interleaved = names_interleaved(row);
  const bool may = row.plan.schedule.empty() && interleaves_by_habit(scenario.stack);
  // Where nothing tells the batch, it was filled in by microbatches. Those of sharded states move
  // all parameters, so that who measures a rate makes them large.
  const bool batch = !row.plan.micro_batch && !tells_batch(row) && measures_rate(row) &&
                     scenario.plan.pp == 1 && shards_by_habit(row, scenario.stack);
  return {!row.plan.micro_batch && (batch || tells_batch(row)),
          !row.plan.virtual_pp && scenario.plan.pp > 1 && (may || interleaved),
          // What waits on the host is not recomputed as well.
          !scenario.plan.offload_activations && leaves_recomputation_open(row) &&
              !recomputes_parts_by_habit(scenario.stack),
          !row.plan.zero_stage || !row.plan.sequence_parallel, batch, interleaved};
}

// How states and activations are spread over ranks.
struct Sharding {
  int zero_stage;
  bool sequence_parallel;
};

// Pipelines run their microbatches with whole gradients, and Megatron-LM shards no more than the
// optimizer's states.
int most_sharding(const StackSpec& stack, const Plan& plan) {
  const std::vector<int>& runs = stack.zero_stages;
  const bool is_megatron = stack.family == "megatron" && !is_generic(stack.name);
  const int most = !runs.empty() ? *std::max_element(runs.begin(), runs.end())
                   : is_megatron ? 1
                                 : 3;
  return plan.pp > 1 ? std::min(most, 1) : most;
}

// The habit of the stack, then what takes less memory.
std::vector<Sharding> shardings(const TrainingRow& row, const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  std::vector<Sharding> choices = {{plan.zero_stage, plan.sequence_parallel}};
  const bool generic = is_generic(scenario.stack.name);
  if (!row.plan.sequence_parallel && plan.tp > 1 && !plan.sequence_parallel && generic)
    choices.push_back({plan.zero_stage, true});
  if (row.plan.zero_stage || plan.dp * plan.cp == 1 || says(row.stack, "ddp")) return choices;
  const bool sequence_parallel = choices.back().sequence_parallel;
  for (int stage = plan.zero_stage + 1; stage <= most_sharding(scenario.stack, plan); ++stage)
    choices.push_back({stage, sequence_parallel});
  return choices;
}

std::vector<std::int64_t> micro_batches(const Plan& plan, const OpenChoices& open) {
  if (!open.micro_batch) return {plan.micro_batch};
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 1; size <= kMostSequences; size *= 2)
    if (open.batch || plan.global_batch % (plan.dp * size) == 0) sizes.push_back(size);
  return sizes;
}

void set_micro_batch(Plan& plan, std::int64_t size, bool batch_follows) {
  if (batch_follows) plan.global_batch = plan.global_batch / plan.micro_batch * size;
  plan.micro_batch = size;
}

// Layers that the chunks share, where embedding and head may count as layers.
std::int64_t counted_layers(const ModelSpec& model, const Plan& plan) {
  return model.layers + (plan.embedding_counts_as_layer ? 1 : 0) +
         (plan.head_counts_as_layer ? 1 : 0);
}

std::vector<std::int64_t> virtual_stages(const ModelSpec& model, const Plan& plan,
                                         const OpenChoices& open) {
  std::vector<std::int64_t> counts = {plan.vpp};
  const std::int64_t all = counted_layers(model, plan);
  if (!open.virtual_stages || all % plan.pp != 0) return counts;
  const std::int64_t layers = all / plan.pp;
  for (std::int64_t count = 2; count <= std::min(layers, kMostChunks); ++count)
    if (layers % count == 0) counts.push_back(count);
  if (open.interleaved && counts.size() > 1) counts.erase(counts.begin());
  return counts;
}

struct Recomputation {
  RecomputePolicy policy;
  std::int64_t layers = 0;
};

// From the one that takes the least time to the one that takes the least memory.
std::vector<Recomputation> recomputations(const Scenario& scenario, bool open) {
  const Plan& plan = scenario.plan;
  if (!open) return {{plan.recompute, plan.recompute_layers}};
  std::vector<Recomputation> choices = {{RecomputePolicy::None}};
  // Fused attention keeps no scores that could be recomputed.
  if (!scenario.stack.flash_attention) choices.push_back({RecomputePolicy::Selective});
  const std::int64_t layers = plan.even_chunk(scenario.model.layers);
  for (std::int64_t count = 1; count < layers; ++count)
    choices.push_back({RecomputePolicy::Full, count});
  choices.push_back({RecomputePolicy::Full});
  return choices;
}

struct Tuned {
  std::optional<Plan> plan;
  Seconds time = infinite<Seconds>();  // of a sequence
};

// Tries all micro-batches and pipelines with one recomputation, as far as they take no more than
// `memory`.
Tuned tune(Scenario scenario, const OpenChoices& open, Bytes memory) {
  const Plan stated = scenario.plan;
  Tuned tuned;
  for (const std::int64_t size : micro_batches(stated, open)) {
    for (const std::int64_t count : virtual_stages(scenario.model, stated, open)) {
      scenario.plan = stated;
      set_micro_batch(scenario.plan, size, open.batch);
      scenario.plan.vpp = count;
      if (count > 1) scenario.plan.schedule = ScheduleKind::Interleaved;
      if (!broken_rules(scenario.model, &scenario.cluster, scenario.plan).empty()) continue;
      const StepEstimate estimate = estimate_step(scenario);
      const bool fits = estimate.memory <= memory;
      const Seconds time = estimate.analytic / static_cast<double>(scenario.plan.global_batch);
      if (fits && time < tuned.time) tuned = {scenario.plan, time};
    }
  }
  return tuned;
}

// The first sharding, from the stack's habit on, with which anything fits.
Tuned tune_with_least_sharding(const TrainingRow& row, Scenario scenario, const OpenChoices& open,
                               const Recomputation& recomputation) {
  scenario.plan.recompute = recomputation.policy;
  scenario.plan.recompute_layers = recomputation.layers;
  for (const Sharding& sharding : shardings(row, scenario)) {
    scenario.plan.zero_stage = sharding.zero_stage;
    scenario.plan.sequence_parallel = sharding.sequence_parallel;
    if (Tuned tuned = tune(scenario, open, scenario.cluster.accelerator.memory); tuned.plan)
      return tuned;
  }
  return {};
}

// What ran out of memory was not tuned to fit: it has the stack's habits, one sequence, which needs
// the least of any, and the fewest chunks that the row allows.
Plan untuned(const Scenario& scenario, const OpenChoices& open) {
  Plan plan = scenario.plan;
  plan.vpp = virtual_stages(scenario.model, plan, open).front();
  if (plan.vpp > 1) plan.schedule = ScheduleKind::Interleaved;
  return broken_rules(scenario.model, &scenario.cluster, plan).empty() ? plan : scenario.plan;
}

// Recomputation is the last resort, and sharding more than usual the one before: the first of both
// with which anything fits. The more layers are recomputed, the less memory a plan needs.
Tuned tune_with_least_recomputation(const TrainingRow& row, const Scenario& scenario,
                                    const OpenChoices& open) {
  const std::vector<Recomputation> choices = recomputations(scenario, open.recomputation);
  const auto is_partial = [](const Recomputation& choice) { return choice.layers > 0; };
  auto first = std::find_if(choices.begin(), choices.end(), is_partial);
  for (auto whole = choices.begin(); whole != first; ++whole) {
    if (Tuned tuned = tune_with_least_sharding(row, scenario, open, *whole); tuned.plan)
      return tuned;
  }
  if (first == choices.end()) return {};
  auto last = std::prev(choices.end());
  Tuned best = tune_with_least_sharding(row, scenario, open, *last);
  while (best.plan && first != last) {
    const auto middle = first + (last - first) / 2;
    Tuned tuned = tune_with_least_sharding(row, scenario, open, *middle);
    if (tuned.plan) {
      best = std::move(tuned);
      last = middle;
    } else {
      first = middle + 1;
    }
  }
  return best;
}

// Of pipelines that fit nowhere, the fastest of those that exceed the memory by about
// the least: what ran as the source says did fit, and the prediction is off.
std::optional<Plan> least_over_full(Scenario scenario, OpenChoices open) {
  constexpr double kDoubt = 1.05;  // of the peak memory that is predicted (docs/validation.md)
  open.micro_batch = false;
  auto least = infinite<Bytes>();
  const Plan stated = scenario.plan;
  for (const std::int64_t count : virtual_stages(scenario.model, stated, open)) {
    scenario.plan.vpp = count;
    scenario.plan.schedule = count > 1 ? ScheduleKind::Interleaved : stated.schedule;
    if (broken_rules(scenario.model, &scenario.cluster, scenario.plan).empty())
      least = std::min(least, estimate_step(scenario).memory);
  }
  scenario.plan = stated;
  return tune(std::move(scenario), open, least * kDoubt).plan;
}

std::string recomputation_text(const TrainingRow& row, const Plan& plan) {
  const std::string layers = plan.recompute_layers > 0
                                 ? fmt::format(" on {} layers of each chunk", plan.recompute_layers)
                                 : "";
  const std::string words =
      row.plan.recompute.empty() ? "" : fmt::format(" for \"{}\"", row.plan.recompute);
  return fmt::format("recompute {}{}{}", name_of(plan.recompute), layers, words);
}

bool same_sharding(const Plan& a, const Plan& b) {
  return a.zero_stage == b.zero_stage && a.sequence_parallel == b.sequence_parallel;
}

// The statements of plan_of_row that the choice overrules are taken back.
std::vector<std::string> choices_in_words(const TrainingRow& row, const OpenChoices& open,
                                          const Plan& before, const Plan& plan,
                                          std::vector<std::string>& filled_in) {
  std::vector<std::string> said;
  const auto take_back = [&filled_in](const char* key) {
    std::erase_if(filled_in, [key](const std::string& text) { return text.starts_with(key); });
  };
  if (open.batch) {
    take_back("micro_batch:");
    take_back("global_batch:");
    said.push_back(fmt::format("global_batch {}", plan.global_batch));
  }
  if (open.micro_batch) said.push_back(fmt::format("micro_batch {}", plan.micro_batch));
  if (open.virtual_stages) {
    take_back("schedule:");
    const bool noted = open.interleaved && row.plan.schedule.empty();
    said.push_back(fmt::format("virtual_pp {}, schedule {}{}", plan.vpp, name_of(plan.schedule),
                               noted ? " by the notes" : ""));
  }
  if (open.recomputation) said.push_back(recomputation_text(row, plan));
  if (!same_sharding(before, plan)) {
    take_back("zero_stage:");
    take_back("sequence_parallel:");
    said.push_back(fmt::format("zero_stage {}, sequence_parallel {}", plan.zero_stage,
                               plan.sequence_parallel));
  }
  return said;
}

}  // namespace

bool choose_as_tuned(const TrainingRow& row, Scenario& scenario,
                     std::vector<std::string>& filled_in) {
  const OpenChoices open = open_choices(row, scenario);
  if (!open.micro_batch && !open.virtual_stages && !open.recomputation && !open.sharding)
    return false;
  const Plan before = scenario.plan;
  if (row.measured.oom) {
    scenario.plan = untuned(scenario, open);
    const std::vector<std::string> said =
        choices_in_words(row, open, before, scenario.plan, filled_in);
    if (!said.empty())
      filled_in.push_back(fmt::format("{}: not tuned, as it does not fit", fmt::join(said, ", ")));
    return false;
  }
  const Tuned tuned = tune_with_least_recomputation(row, scenario, open);
  if (!tuned.plan && open.recomputation) scenario.plan.recompute = RecomputePolicy::Full;
  std::optional<Plan> chosen = tuned.plan;
  if (!chosen && open.virtual_stages) chosen = least_over_full(scenario, open);
  if (chosen) scenario.plan = *chosen;
  const std::vector<std::string> said =
      choices_in_words(row, open, before, scenario.plan, filled_in);
  if (said.empty()) return false;
  filled_in.push_back(fmt::format("{}: {}", fmt::join(said, ", "),
                                  tuned.plan ? "the fastest that fits" : "nothing fits"));
  return tuned.plan.has_value();
}

Bytes least_memory(const TrainingRow& row, Scenario scenario) {
  if (open_choices(row, scenario).recomputation) scenario.plan.recompute = RecomputePolicy::Full;
  const Sharding most = shardings(row, scenario).back();
  scenario.plan.zero_stage = most.zero_stage;
  scenario.plan.sequence_parallel = most.sequence_parallel;
  return estimate_step(scenario).memory;
}

bool leaves_plan_open(const TrainingRow& row, const Scenario& scenario) {
  const OpenChoices open = open_choices(row, scenario);
  const bool cut = !row.plan.tp && !row.plan.pp && scenario.plan.tp * scenario.plan.pp > 1;
  return open.micro_batch || open.virtual_stages || open.recomputation || cut;
}

std::vector<std::string> open_fields(const TrainingRow& stated, const TrainingRow& completed,
                                     const Scenario& scenario) {
  const OpenChoices open = open_choices(stated, scenario);
  const Plan& plan = scenario.plan;
  std::vector<std::string> fields;
  const auto add = [&fields](bool is_open, const char* field) {
    if (is_open) fields.emplace_back(field);
  };
  add(open.virtual_stages, "vpp");
  add(open.micro_batch, "micro_batch");
  add(open.micro_batch && open.batch, "global_batch");
  add(open.virtual_stages && stated.plan.schedule.empty(), "schedule");
  add(open.recomputation, "recompute");
  add(!completed.plan.zero_stage && plan.dp * plan.cp > 1, "zero_stage");
  add(!completed.plan.sequence_parallel && plan.tp > 1, "sequence_parallel");
  return fields;
}

}  // namespace shardwright::sim
