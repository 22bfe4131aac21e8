#include "cli/output/step_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "cli/output/figures.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/step_json.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/quantity_text.hpp"
#include "core/base/standard_streams.hpp"
#include "core/program/program.hpp"
#include "core/spec/plan_json.hpp"
#include "core/spec/plan_text.hpp"
#include "core/spec/pools.hpp"
#include "planner/explain.hpp"
#include "planner/figure.hpp"
#include "planner/wording.hpp"
#include "sim/step/fidelity.hpp"
#include "sim/step/predicted_timeline.hpp"
#include "sim/step/prices.hpp"

namespace shardwright::cli {
namespace {

// The parts of the step that take time, in their order.
std::vector<std::pair<Seconds, sim::StepPart>> time_parts(const sim::TimeBreakdown& time) {
  std::vector<std::pair<Seconds, sim::StepPart>> parts;
  for (const sim::StepPart part : enumerators<sim::StepPart>())
    if (time.of(part) > Seconds()) parts.emplace_back(time.of(part), part);
  return parts;
}

// The parts of the memory at its peak, in their order.
std::vector<std::pair<Bytes, std::string>> memory_parts(const sim::MemoryPeak& memory) {
  std::vector<std::pair<Bytes, std::string>> parts;
  for (const MemoryCategory category : enumerators<MemoryCategory>()) {
    if (memory.of(category).value() > 0.0)
      parts.emplace_back(memory.of(category), planner::memory_text(category));
  }
  return parts;
}

template <class Parts>
Parts largest_first(Parts parts) {
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  return parts;
}

Table time_table(const sim::StepResult& result) {
  Table table(
      {{"time of the step", ColumnKind::Prose}, {"time", kNumber, "s"}, {"share", kNumber, "%"}});
  const int decimals = decimals_for(result.step.value());
  for (const auto& [time, part] : largest_first(time_parts(result.time()))) {
    table.add_row({planner::part_title(part), format_fixed(time.value(), decimals),
                   format_percent(time / result.step)});
  }
  table.add_row({"step", format_fixed(result.step.value(), decimals), ""});
  return table;
}

Table memory_table(const sim::MemoryPeak& memory, Bytes capacity) {
  Table table({{"memory at the peak", ColumnKind::Prose},
               {"size", kNumber, "GB"},
               {"share", kNumber, "%"}});
  for (const auto& [bytes, name] : largest_first(memory_parts(memory))) {
    table.add_row({name, format_gigabytes(bytes, 2), format_percent(bytes / capacity)});
  }
  table.add_row({"peak", format_gigabytes(memory.peak, 2), format_percent(memory.peak / capacity)});
  return table;
}

Table stage_table(const Plan& plan, const sim::StepResult& result) {
  std::vector<Column> columns = time_columns();
  if (names_pools(plan)) columns.insert(columns.begin(), {"pool", ColumnKind::Prose});
  columns.insert(columns.begin(), {"stage", kNumber});
  columns.push_back({"memory", kNumber, "GB"});
  Table table(std::move(columns));
  const int decimals = decimals_for(result.step.value());
  for (std::size_t i = 0; i < result.stages.size(); ++i) {
    std::vector<std::string> row = time_cells(result.stages[i].time, decimals);
    if (names_pools(plan)) row.insert(row.begin(), printable(pool_name_of_stage(plan, i)));
    row.insert(row.begin(), format_count(static_cast<std::int64_t>(i) % plan.pp));
    row.push_back(format_gigabytes(result.stages[i].memory.peak));
    table.add_row(std::move(row));
  }
  return table;
}

// "16 × H100 + 8 × A100".
std::string accelerators_text(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  const auto text = [](std::int64_t count, const ClusterSpec& pool) {
    return fmt::format("{} × {}", format_count(count), pool.accelerator.name);
  };
  if (!names_pools(plan)) return text(plan.world_size(), scenario.cluster);
  std::vector<std::string> parts;
  for (const ClusterSpec& pool : pool_clusters(scenario.cluster, plan))
    parts.push_back(text(ranks_on_pool(plan, pool.name), pool));
  return fmt::format("{}", fmt::join(parts, " + "));
}

std::string batch_text(const Plan& plan) {
  if (!plan.replica_pools.empty()) {
    std::vector<std::string> parts;
    for (const PoolReplicas& part : plan.replica_pools)
      parts.push_back(
          fmt::format("{} of {} per replica on {}", format_plural(part.microbatches, "microbatch"),
                      format_count(plan.micro_batch), printable(part_pools_text(part, " then "))));
    return fmt::format("{} of {}, {}", format_plural(plan.global_batch, "sequence"),
                       format_plural(plan.seq_len, "token"), fmt::join(parts, ", "));
  }
  return fmt::format("{} of {}, {} of {} per replica", format_plural(plan.global_batch, "sequence"),
                     format_plural(plan.seq_len, "token"),
                     format_plural(plan.microbatches(), "microbatch"),
                     format_count(plan.micro_batch));
}

std::string memory_text(const sim::StepResult& result, const ClusterSpec& cluster,
                        const validation::Confidence& confidence) {
  const Bytes shortfall = memory_shortfall(result, cluster);
  std::string text = fmt::format("{} of {} at the peak", format_bytes(result.memory().peak),
                                 format_bytes(cluster.accelerator.memory));
  if (shortfall > Bytes(0)) text += fmt::format(": {} too much", format_bytes(shortfall));
  if (confidence.fit_probability)
    text +=
        fmt::format("; fits with {} % probability", format_percent(*confidence.fit_probability));
  return text;
}

}  // namespace

std::string cluster_text(const Scenario& scenario) {
  return fmt::format("{} on {} ({}), {}", scenario.model.name, accelerators_text(scenario),
                     scenario.cluster.name, scenario.stack.name);
}

std::string plan_text(const Plan& plan) {
  std::string text = fmt::format("dp {}, tp {}, pp {}", plan.dp, plan.tp, plan.pp);
  if (plan.cp > 1) text += fmt::format(", cp {} {}", plan.cp, name_of(plan.context_parallel));
  if (plan.ep > 1) text += fmt::format(", ep {}", plan.ep);
  if (plan.expert_tp > 1) text += fmt::format(", expert tp {}", plan.expert_tp);
  if (plan.vpp > 1) text += fmt::format(", vpp {}", plan.vpp);
  if (plan.zero_stage > 0) text += fmt::format(", zero {}", plan.zero_stage);
  if (plan.shard_group > 0) text += fmt::format(" over {}", plan.shard_group);
  if (const std::string agree = replicas_text(plan); !agree.empty()) text += ", " + agree;
  text += fmt::format(", mb {}", plan.micro_batch);
  if (plan.pp > 1) text += fmt::format(", {}", name_of(plan.schedule));
  if (plan.recompute != RecomputePolicy::None) text += ", recompute " + recompute_text(plan);
  if (plan.optimizer_states != OptimizerStates::OfStack)
    text += fmt::format(", {} optimizer states", name_of(plan.optimizer_states));
  if (plan.offloads_optimizer())
    text += fmt::format(", optimizer on {}", name_of(plan.offload_optimizer));
  if (plan.offload_activations) text += ", " + offloaded_activations_text(plan) + " offloaded";
  if (plan.lora) text += ", " + lora_text(plan);
  if (plan.pp > 1 && plan.embedding_counts_as_layer) text += ", embedding and head as layers";
  if (!plan.stage_layers.empty()) text += ", layers " + layers_text(plan.stage_layers);
  for (const PoolReplicas& part : plan.replica_pools)
    text +=
        fmt::format(", {} on {}", format_plural(part.replicas, "replica"),
                    printable(part_pools_text(part, " then "))) +
        (part.experts > 0 ? fmt::format(" with {} a rank", format_plural(part.experts, "expert"))
                          : "");
  if (!plan.stage_pools.empty())
    text += ", on " + printable(fmt::format("{}", fmt::join(pools_of(plan), " then ")));
  if (plan.pp > 1 && plan.rank_order != Plan().rank_order)
    text += ", ranks " + rank_order_text(plan.rank_order);
  return text;
}

std::vector<Column> time_columns() {
  return {{"compute", kNumber, "s"},
          {"exposed", kNumber, "s"},
          {"bubble", kNumber, "s"},
          {"host", kNumber, "s"}};
}

std::vector<std::string> time_cells(const sim::TimeBreakdown& time, int decimals) {
  // The column of each use; stalls, which only the full level has, stand apart.
  constexpr EnumArray<planner::TimeUse, std::size_t> kColumns{{0, 0, 0, 1, 1, 2, 3, 4}};
  std::array<Seconds, 5> sums{};
  for (const sim::StepPart part : enumerators<sim::StepPart>())
    sums[kColumns[planner::use_of(part)]] += time.of(part);
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < time_columns().size(); ++i)
    cells.push_back(format_fixed(sums[i].value(), decimals));
  return cells;
}

std::string interval_text(const validation::StepInterval& interval) {
  return fmt::format("{}, from the errors on {}", format_time_range(interval.low, interval.high),
                     format_plural(interval.runs, "published run"));
}

// The sources of the bottleneck's kernel times.
std::string basis_text(const sim::BasisTimes& basis) {
  const Seconds total = basis.total();
  std::vector<std::string> parts;
  const auto add = [&](Seconds time, const char* ground) {
    if (time > Seconds(0))
      parts.push_back(fmt::format("{} % {}", format_percent(time / total), ground));
  };
  add(basis.measured, "from measured kernels");
  add(basis.formula, "from formulas");
  add(basis.extrapolated, "from formulas outside the range they were fitted on");
  return fmt::format("{}", fmt::join(parts, ", "));
}

void add_step(Page& page, const Scenario& scenario, const sim::StepResult& result,
              const validation::Confidence& confidence) {
  const ClusterSpec fullest = stage_cluster(scenario.cluster, scenario.plan, result.fullest);
  const Bytes capacity = fullest.accelerator.memory;
  const sim::Throughput& rates = result.throughput;
  page.heading(cluster_text(scenario));
  page.facts({{"plan", plan_text(scenario.plan)},
              {"batch", batch_text(scenario.plan)},
              {"step", fmt::format("{}, {} tokens/s per GPU", format_time(result.step),
                                   format_number(rates.tokens_per_s_per_gpu))},
              {"80 % interval", confidence.step ? interval_text(*confidence.step)
                                : !names_pools(scenario.plan)
                                    ? "unknown: no published run used this stack"
                                    : "unknown: too few published runs used several pools"},
              {"compute", fmt::format("{} TFLOP/s per GPU, MFU {} %, HFU {} %",
                                      format_number(rates.tflops_per_gpu),
                                      format_percent(rates.mfu), format_percent(rates.hfu))},
              {"memory", memory_text(result, fullest, confidence)},
              {"kernel times", basis_text(result.basis)}});
  if (confidence.prediction_class) page.paragraph(validation::ground_text("The plan", confidence));
  page.table(time_table(result));
  page.table(memory_table(result.memory(), capacity));
}

void add_confidence(Page& page, const std::string& name, Seconds step,
                    const validation::Confidence& confidence) {
  page.paragraph(fmt::format("Expected step time: {}; 80 % interval {}.", format_time(step),
                             interval_text(*confidence.step)));
  page.paragraph(validation::ground_text(name, confidence));
}

bool report_fit(const std::string& who, const sim::StepResult& result, const Scenario& scenario) {
  return report_fit(who, result, stage_cluster(scenario.cluster, scenario.plan, result.fullest));
}

bool report_fit(const std::string& who, const sim::StepResult& result, const ClusterSpec& cluster) {
  const Bytes shortfall = memory_shortfall(result, cluster);
  if (shortfall <= Bytes(0)) return true;
  print_message(fmt::format(
      "{}: the plan does not fit into memory: it needs {} per accelerator, {} more than {} has",
      who, format_bytes(result.memory().peak), format_bytes(shortfall),
      printable(cluster.accelerator.name)));
  return false;
}

void add_step_figures(Page& page, const Scenario& scenario, const sim::StepResult& result,
                      const Timeline& timeline, const std::string& whose) {
  const ClusterSpec fullest = stage_cluster(scenario.cluster, scenario.plan, result.fullest);
  std::vector<Bar> times, sizes;
  for (const auto& [time, part] : time_parts(result.time()))
    times.push_back(
        {planner::part_title(part), time.value(),
         fmt::format("{}, {} %", format_time(time), format_percent(time / result.step))});
  for (const auto& [bytes, name] : memory_parts(result.memory()))
    sizes.push_back({name, bytes.value(),
                     fmt::format("{}, {} %", format_bytes(bytes),
                                 format_percent(bytes / fullest.accelerator.memory))});
  page.figure("Time of the step" + whose, bars_figure(times));
  page.figure("Memory at the peak" + whose + ", with shares of an accelerator's memory",
              bars_figure(sizes));
  page.figure("Timeline of the step" + whose +
                  ": forward light blue, backward dark blue, optimizer gray, communication red. "
                  "The wheel zooms, dragging moves, a double click shows all.",
              timeline_figure(timeline));
  page.figure("The plan file" + whose + ", which --plan takes",
              fmt::format("<details><summary>JSON</summary><pre>{}</pre></details>\n",
                          html_escaped(json_text(to_json(scenario)))));
}

void add_grounds(Page& page, const Scenario& scenario, const sim::StepResult& result) {
  if (!names_pools(scenario.plan))
    page.paragraph(planner::limit_text(
        "The plan", planner::explain(scenario, result, planner::kSensitivityStep, {})));
  page.paragraph(planner::estimates_text(planner::figure_counts(scenario.cluster, scenario.stack)) +
                 ".");
}

void add_simulated_figures(Page& page, const Scenario& scenario, const std::string& whose) {
  const sim::PricedStep step = sim::lower_and_price(scenario);
  const bool draws = sim::count_spans(step.program) <= sim::kMostSpans;
  const sim::SimulatedStep simulated =
      sim::simulate_at(scenario, step, sim::Fidelity::Event, {}, draws);
  add_step_figures(
      page, scenario, simulated.result,
      draws ? sim::predicted_timeline(step.program, step.prices, simulated.event) : Timeline(),
      whose);
}

void add_stages(Page& page, const Plan& plan, const sim::StepResult& result) {
  if (result.stages.size() > 1) page.table(stage_table(plan, result));
}

void add_filled_in(Page& page, const std::vector<std::string>& filled_in) {
  if (filled_in.empty()) return;
  page.heading("Assumed, because the inputs do not say");
  page.bullets(filled_in);
}

}  // namespace shardwright::cli
