#include "sim/validation/tuned_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "core/spec/plan_check.hpp"
#include "sim/step/step_estimate.hpp"
#include "sim/validation/row_words.hpp"

namespace shardwright::sim {
namespace {

constexpr std::int64_t kMostSequences = 16;  // of a micro-batch that is tried

struct OpenChoices {
  bool micro_batch, virtual_stages, recomputation;
};

bool runs_interleaved(const StackSpec& stack) {
  const std::vector<ScheduleKind>& runs = stack.schedules;
  return runs.empty() ||
         std::find(runs.begin(), runs.end(), ScheduleKind::Interleaved) != runs.end();
}

OpenChoices open_choices(const TrainingRow& row, const Scenario& scenario) {
  const bool schedule = row.plan.schedule.empty() && runs_interleaved(scenario.stack);
  return {!row.plan.micro_batch, !row.plan.virtual_pp && scenario.plan.pp > 1 && schedule,
          row.plan.recompute.empty() || !recompute_in(row.plan.recompute)};
}

std::vector<std::int64_t> micro_batches(const Plan& plan, bool open) {
  if (!open) return {plan.micro_batch};
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 1; size <= kMostSequences; size *= 2)
    if (plan.global_batch % (plan.dp * size) == 0) sizes.push_back(size);
  return sizes;
}

std::vector<std::int64_t> virtual_stages(const ModelSpec& model, const Plan& plan, bool open) {
  std::vector<std::int64_t> counts = {plan.vpp};
  if (!open || model.layers % plan.pp != 0) return counts;
  const std::int64_t layers = model.layers / plan.pp;
  for (std::int64_t count = 2; count <= layers; ++count)
    if (layers % count == 0) counts.push_back(count);
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
  const std::int64_t layers = (scenario.model.layers + plan.chunks() - 1) / plan.chunks();
  for (std::int64_t count = 1; count < layers; ++count)
    choices.push_back({RecomputePolicy::Full, count});
  choices.push_back({RecomputePolicy::Full});
  return choices;
}

struct Tuned {
  std::optional<Plan> plan;
  Seconds time = infinite<Seconds>();
};

// Tries all micro-batches and pipelines with one recomputation.
Tuned tune(Scenario scenario, const OpenChoices& open) {
  const Plan stated = scenario.plan;
  Tuned tuned;
  for (const std::int64_t size : micro_batches(stated, open.micro_batch)) {
    for (const std::int64_t count : virtual_stages(scenario.model, stated, open.virtual_stages)) {
      scenario.plan = stated;
      scenario.plan.micro_batch = size;
      scenario.plan.vpp = count;
      if (count > 1) scenario.plan.schedule = ScheduleKind::Interleaved;
      if (!broken_rules(scenario.model, &scenario.cluster, scenario.plan).empty()) continue;
      const StepEstimate estimate = estimate_step(scenario);
      const bool fits = estimate.memory <= scenario.cluster.accelerator.memory;
      if (fits && estimate.analytic < tuned.time) tuned = {scenario.plan, estimate.analytic};
    }
  }
  return tuned;
}

// Recomputation is the last resort: the first one with which anything fits.
Tuned tune_with_least_recomputation(Scenario scenario, const OpenChoices& open) {
  for (const Recomputation& choice : recomputations(scenario, open.recomputation)) {
    scenario.plan.recompute = choice.policy;
    scenario.plan.recompute_layers = choice.layers;
    if (Tuned tuned = tune(scenario, open); tuned.plan) return tuned;
  }
  return {};
}

std::string recomputation_text(const TrainingRow& row, const Plan& plan) {
  const std::string layers = plan.recompute_layers > 0
                                 ? fmt::format(" on {} layers of each chunk", plan.recompute_layers)
                                 : "";
  const std::string words =
      row.plan.recompute.empty() ? "" : fmt::format(" for \"{}\"", row.plan.recompute);
  return fmt::format("recompute {}{}{}", name_of(plan.recompute), layers, words);
}

}  // namespace

void choose_as_tuned(const TrainingRow& row, Scenario& scenario,
                     std::vector<std::string>& filled_in) {
  const OpenChoices open = open_choices(row, scenario);
  if (!open.micro_batch && !open.virtual_stages && !open.recomputation) return;
  const Tuned tuned = tune_with_least_recomputation(scenario, open);
  if (tuned.plan) {
    scenario.plan = *tuned.plan;
  } else if (open.recomputation) {
    scenario.plan.recompute = RecomputePolicy::Full;
  }
  std::vector<std::string> said;
  if (open.micro_batch) said.push_back(fmt::format("micro_batch {}", scenario.plan.micro_batch));
  if (open.virtual_stages) {
    std::erase_if(filled_in, [](const std::string& text) { return text.starts_with("schedule:"); });
    said.push_back(fmt::format("virtual_pp {}, schedule {}", scenario.plan.vpp,
                               name_of(scenario.plan.schedule)));
  }
  if (open.recomputation) said.push_back(recomputation_text(row, scenario.plan));
  filled_in.push_back(fmt::format("{}: {}", fmt::join(said, ", "),
                                  tuned.plan ? "the fastest that fits" : "nothing fits"));
}

}  // namespace shardwright::sim
