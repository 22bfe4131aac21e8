// shardwright simulate
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands/command.hpp"
#include "cli/commands/interrupt.hpp"
#include "cli/options/full_replay_options.hpp"
#include "cli/options/scenario_options.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/page.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/server_report.hpp"
#include "cli/output/step_json.hpp"
#include "cli/output/step_page.hpp"
#include "core/base/error.hpp"
#include "core/base/nearest_name.hpp"
#include "core/base/quantity_text.hpp"
#include "core/program/rank_grid.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/pools.hpp"
#include "core/timeline/perfetto.hpp"
#include "sim/memory/memory_replay.hpp"
#include "sim/step/fidelity.hpp"
#include "sim/step/full_replay.hpp"
#include "sim/step/predicted_timeline.hpp"
#include "sim/step/simulate.hpp"
#include "sim/step/step_result.hpp"
#include "validation/convergence.hpp"

namespace shardwright::cli {

namespace {

using nlohmann::ordered_json;

// Shorter delays, as a part of the step, are not reported.
constexpr double kLeastDelay = 1e-6;
// The shares of the work that are done before the simulation, the draws and the files, roughly.
constexpr double kBeforeStep = 0.1, kBeforeDraws = 0.6, kBeforeFiles = 0.8;

Table rank_table(const RankGrid& grid, const sim::StepResult& result,
                 const sim::FullReplay& replay) {
  std::vector<Column> columns = time_columns();
  columns.insert(columns.begin(), {{"rank", kNumber}, {"stage", kNumber}});
  columns.insert(columns.end(), {{"stalled", kNumber, "s"}, {"memory", kNumber, "GB"}});
  Table table(std::move(columns));
  const int decimals = decimals_for(replay.step.value());
  for (const sim::WatchedRank& watched : replay.watched) {
    const std::int64_t stage = grid.locate(watched.rank).stage;
    const Bytes memory = result.stages[static_cast<std::size_t>(stage)].memory.peak;
    std::vector<std::string> row = time_cells(watched.time, decimals);
    row.insert(row.begin(), {format_count(watched.rank), format_count(stage)});
    row.insert(row.end(),
               {format_fixed(watched.time.stall.value(), decimals), format_gigabytes(memory)});
    table.add_row(std::move(row));
  }
  return table;
}

// Adds the steps of the watched ranks, the ranks that compute longest and shortest if ranks differ,
// and the delay from shared links.
void add_ranks(Page& page, const Plan& plan, const sim::StepResult& result,
               const sim::FullReplay& replay) {
  const auto least =
      std::min_element(replay.ranks.begin(), replay.ranks.end(),
                       [](const auto& a, const auto& b) { return a.compute() < b.compute(); });
  const sim::RankUse& slowest = replay.ranks[static_cast<std::size_t>(replay.slowest)];
  page.table(rank_table(RankGrid(plan), result, replay));
  if (least->compute() < slowest.compute()) {
    page.paragraph(fmt::format("Rank {} computes longest ({}), rank {} shortest ({}).",
                               format_count(replay.slowest), format_time(slowest.compute()),
                               format_count(least - replay.ranks.begin()),
                               format_time(least->compute())));
  }
  if (replay.contention_delay > kLeastDelay * replay.step) {
    page.paragraph(fmt::format("Sharing links delays transfers by {}, summed over all of them.",
                               format_time(replay.contention_delay)));
  }
}

// {"slowest_rank", "contention_delay_s", "ranks": [{"rank", "stage", "finish_s", "streams",
// "memory_bytes", and for watched ranks "time"}]}
ordered_json full_replay_json(const Plan& plan, const sim::StepResult& result,
                              const sim::FullReplay& replay) {
  const RankGrid grid(plan);
  ordered_json ranks = ordered_json::array();
  for (std::size_t i = 0; i < replay.ranks.size(); ++i) {
    const auto rank = static_cast<std::int64_t>(i);
    const std::int64_t stage = grid.locate(rank).stage;
    const Bytes memory = result.stages[static_cast<std::size_t>(stage)].memory.peak;
    ranks.push_back({{"rank", rank},
                     {"stage", stage},
                     {"finish_s", replay.ranks[i].finish.value()},
                     {"streams", streams_json(sim::stream_uses(replay.ranks[i].busy, replay.step))},
                     {"memory_bytes", memory.value()}});
  }
  for (const sim::WatchedRank& watched : replay.watched)
    ranks[static_cast<std::size_t>(watched.rank)]["time"] = sim::time_json(watched.time);
  return {{"slowest_rank", replay.slowest},
          {"contention_delay_s", replay.contention_delay.value()},
          {"ranks", std::move(ranks)}};
}

struct SimulateOptions {
  CommonOptions common;
  ScenarioOptions scenario;
  std::string fidelity;
  FullReplayOptions full;
  std::string plan_out, trace, timeline;
};

sim::Fidelity read_fidelity(const std::string& text) {
  if (text.empty()) return sim::Fidelity::Event;
  return parse_name<sim::Fidelity>(text, "shardwright simulate: --fidelity");
}

sim::FullOptions full_options(const SimulateOptions& options, const Scenario& scenario,
                              sim::Fidelity fidelity) {
  const std::string given = given_full_replay_options(options.full);
  if (!given.empty() && fidelity != sim::Fidelity::Full) {
    throw InputError("shardwright simulate",
                     {{"--fidelity", fmt::format("\"{}\"", name_of(fidelity)),
                       fmt::format("\"full\", which {} requires", given)}});
  }
  return read_full_replay_options(options.full, scenario, "shardwright simulate");
}

bool wants_timeline(const SimulateOptions& options) {
  return !options.trace.empty() || !options.timeline.empty();
}

// Checked before the replay of every rank, which takes minutes.
void check_timeline_size(const SimulateOptions& options, const Program& program,
                         const sim::FullOptions& full) {
  if (!wants_timeline(options)) return;
  const std::uint64_t spans = sim::count_spans(program, full.watched_ranks);
  if (spans <= sim::kMostSpans) return;
  throw InputError("shardwright simulate",
                   {{options.trace.empty() ? "--timeline" : "--trace",
                     fmt::format("a step of {} ops on the traced ranks", spans),
                     fmt::format("at most {}: fewer microbatches, as in a smaller --global-batch",
                                 sim::kMostSpans)}});
}

// A page goes without the timeline of a step that is too long for one.
bool draws_timeline(const SimulateOptions& options, const Program& program,
                    const sim::FullOptions& full) {
  return !options.common.html.empty() &&
         sim::count_spans(program, full.watched_ranks) <= sim::kMostSpans;
}

sim::SimulatedStep run(ProgressLine& line, const Scenario& scenario, const sim::PricedStep& step,
                       sim::Fidelity fidelity, sim::FullOptions full, bool timeline) {
  line.show(kBeforeStep, "simulating the step");
  // The other levels have no partial result, so that the signal simply ends the process.
  if (fidelity != sim::Fidelity::Full)
    return sim::simulate_at(scenario, step, fidelity, full, timeline);
  const InterruptWatch interrupt;
  full.stop = interrupt.token();
  full.progress = [&](double share) {
    line.show(kBeforeStep + (kBeforeDraws - kBeforeStep) * share, "replaying every rank");
  };
  return sim::simulate_at(scenario, step, fidelity, full, timeline);
}

Timeline timeline_of(const sim::PricedStep& step, const sim::SimulatedStep& simulated) {
  if (simulated.full) return sim::predicted_timeline(step.program, *simulated.full);
  return sim::predicted_timeline(step.program, step.prices, simulated.event);
}

// Writes the step as a Perfetto trace and as a timeline of ours.
void write_timelines(const SimulateOptions& options, const Scenario& scenario,
                     const sim::PricedStep& step, const sim::SimulatedStep& simulated) {
  if (!wants_timeline(options)) return;
  Timeline timeline = timeline_of(step, simulated);
  sim::add_reserved_memory(timeline, scenario.plan, scenario.model, scenario.stack);
  if (!options.trace.empty()) {
    write_file(
        options.trace, [&](std::ostream& stream) { write_perfetto(timeline, stream); },
        options.common.force);
  }
  if (!options.timeline.empty()) {
    write_file(
        options.timeline, [&](std::ostream& stream) { write_timeline(timeline, stream); },
        options.common.force);
  }
}

// The confidence in the step time whose errors on published runs are known: that of the event level
// or of the full one.
validation::Confidence confidence_of(const ChosenScenario& chosen,
                                     const sim::SimulatedStep& simulated) {
  const Seconds surest = simulated.full ? simulated.result.step : simulated.event_step;
  return validation::confidence_of(chosen.scenario, chosen.prediction_class, surest,
                                   simulated.result.memory().peak);
}

nlohmann::ordered_json simulate_json(const ChosenScenario& chosen,
                                     const sim::SimulatedStep& simulated) {
  const Scenario& scenario = chosen.scenario;
  nlohmann::ordered_json document = new_document("step");
  document["inputs"] = inputs_json(scenario.model, scenario.cluster, scenario.stack);
  document["filled_in"] = chosen.filled_in;
  document["notes"] = chosen.notes;
  document["fidelity"] = name_of(simulated.fidelity);
  document["partial"] = simulated.cancelled;
  document.update(step_json(scenario, simulated.result, confidence_of(chosen, simulated)));
  if (scenario.plan.replicas != ReplicaAgreement())
    document["convergence"] =
        validation::cost_json(validation::convergence_cost(scenario.model, scenario.plan));
  if (simulated.servers) document["servers"] = servers_json(*simulated.servers, simulated.served);
  document["event_step_s"] = simulated.event_step.value();
  document["breakdown_fidelity"] =
      name_of(simulated.full ? simulated.fidelity : sim::Fidelity::Event);
  if (simulated.full)
    document.update(full_replay_json(scenario.plan, simulated.result, *simulated.full));
  add_parts(document, scenario.model, scenario.cluster, scenario.stack);
  return document;
}

void add_fidelity(Page& page, const sim::SimulatedStep& simulated, bool traced, bool alike_links) {
  if (simulated.cancelled)
    page.warning("interrupted before every rank was replayed; this is the step of the event level");
  if (simulated.full && !alike_links)
    page.paragraph("Transfers of this replay share no links: the pools' links differ.");
  if (simulated.fidelity == sim::Fidelity::Event) return;
  const std::string breakdown = simulated.full
                                    ? ""
                                    : fmt::format(" The breakdown{} of the event level.",
                                                  traced ? " and the trace are those" : " is that");
  page.paragraph(
      fmt::format("Fidelity level {}: {}, {} % relative to the {} of the event level.{}",
                  name_of(simulated.fidelity), format_time(simulated.result.step),
                  format_signed_percent(simulated.result.step / simulated.event_step - 1.0),
                  format_time(simulated.event_step), breakdown));
}

// What replicas that do not agree in each step as they are cost in tokens.
void add_convergence(Page& page, const Scenario& scenario) {
  if (scenario.plan.replicas == ReplicaAgreement()) return;
  page.facts({{"further tokens for the same loss",
               validation::cost_text(validation::convergence_cost(scenario.model, scenario.plan),
                                     scenario.plan)}});
}

// Draws the variation of the ranks again and again, if that is asked for.
std::optional<sim::StragglerDraws> draw(ProgressLine& line, const Scenario& scenario,
                                        const sim::PricedStep& step, sim::FullOptions full,
                                        const std::optional<sim::DrawOptions>& draws) {
  if (!draws) return std::nullopt;
  const InterruptWatch interrupt;
  full.stop = interrupt.token();
  full.progress = [&](double share) {
    line.show(kBeforeDraws + (kBeforeFiles - kBeforeDraws) * share, "drawing slow ranks");
  };
  return sim::draw_stragglers(scenario, step, full, *draws);
}

void add_draws(Page& page, const sim::StragglerDraws& draws) {
  if (draws.cancelled) page.warning("interrupted: the draws so far");
  if (draws.steps.empty()) return;
  const auto at = [&](double share) { return format_time(draws.quantile(share)); };
  page.facts({{"draws", format_count(static_cast<std::int64_t>(draws.steps.size()))},
              {"step", fmt::format("P50 {}, P95 {}, P99 {}; {} with ranks that are all alike",
                                   at(0.5), at(0.95), at(0.99), format_time(draws.uniform_step))},
              {"slowest node", fmt::format("another in its place makes the step {} % shorter",
                                           format_percent(draws.gain_of_replacing, 2))}});
}

ordered_json draws_json(const sim::StragglerDraws& draws) {
  if (draws.steps.empty()) return {{"draws", 0}};
  return {{"draws", draws.steps.size()},
          {"p50_s", draws.quantile(0.5).value()},
          {"p95_s", draws.quantile(0.95).value()},
          {"p99_s", draws.quantile(0.99).value()},
          {"mean_s", draws.mean().value()},
          {"alike_s", draws.uniform_step.value()},
          {"gain_of_replacing_slowest_node", draws.gain_of_replacing}};
}

ExitCode simulate(const SimulateOptions& options) {
  const std::vector<Destination> files = {{"--json", options.common.json},
                                          {"--out", options.plan_out},
                                          {"--trace", options.trace},
                                          {"--timeline", options.timeline}};
  check_destinations(files, options.common.force);
  const sim::Fidelity fidelity = read_fidelity(options.fidelity);
  const ChosenScenario chosen = choose_scenario(options.scenario, "shardwright simulate");
  if (fidelity == sim::Fidelity::Bound) refuse_pools(chosen.scenario.plan, "--fidelity bound");
  ProgressLine line(show_progress(options.common));
  line.show(0.0, "pricing the ops of the step");
  const sim::PricedStep step = sim::lower_and_price(chosen.scenario);
  const sim::FullOptions full = full_options(options, chosen.scenario, fidelity);
  sim::FullOptions varied = full;
  const std::optional<sim::DrawOptions> asked =
      read_draws(options.full, chosen.scenario, varied, "shardwright simulate");
  check_timeline_size(options, step.program, full);
  const bool draws = draws_timeline(options, step.program, full);
  const sim::SimulatedStep simulated =
      run(line, chosen.scenario, step, fidelity, full, wants_timeline(options) || draws);
  const std::optional<sim::StragglerDraws> stragglers =
      draw(line, chosen.scenario, step, varied, asked);
  line.show(kBeforeFiles, "writing what was simulated");
  if (!options.plan_out.empty())
    write_file(options.plan_out, json_text(to_json(chosen.scenario)), options.common.force);
  write_timelines(options, chosen.scenario, step, simulated);
  line.finish();
  print_notes("shardwright simulate", chosen.notes);
  Page page = new_page(options.common, chosen.scenario.cluster);
  add_step(page, chosen.scenario, simulated.result, confidence_of(chosen, simulated));
  if (simulated.servers) add_servers(page, *simulated.servers, simulated.served);
  add_convergence(page, chosen.scenario);
  if (!simulated.full) add_stages(page, chosen.scenario.plan, simulated.result);
  add_fidelity(page, simulated, wants_timeline(options),
               alike_links(chosen.scenario.cluster, chosen.scenario.plan));
  if (simulated.full) add_ranks(page, chosen.scenario.plan, simulated.result, *simulated.full);
  if (stragglers) add_draws(page, *stragglers);
  if (!options.common.html.empty()) {
    add_grounds(page, chosen.scenario, simulated.result);
    add_step_figures(page, chosen.scenario, simulated.result,
                     draws ? timeline_of(step, simulated) : Timeline());
  }
  add_filled_in(page, chosen.filled_in);
  nlohmann::ordered_json document = simulate_json(chosen, simulated);
  if (stragglers) document["stragglers"] = draws_json(*stragglers);
  deliver(options.common, page, document, take_stdout(files));
  const bool fits = report_fit("shardwright simulate", simulated.result, chosen.scenario);
  if (simulated.cancelled || (stragglers && stragglers->cancelled)) return ExitCode::Interrupted;
  return fits ? ExitCode::Ok : ExitCode::NoFeasiblePlan;
}

}  // namespace

void add_simulate_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("simulate", "Simulate one training step of a plan");
  command->footer(R"(Examples:
  shardwright simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 2 \
      --global-batch 32 --seq-len 8192
  shardwright simulate --plan plan.json --trace step.json
  shardwright simulate --plan plan.json --pp 8 --schedule zb-h1
  shardwright simulate --plan plan.json --fidelity full --slow-rank 5:1.2 \
      --watch 0 --trace step.json)");
  const auto options = std::make_shared<SimulateOptions>();
  add_scenario_options(*command, options->scenario);
  options->scenario.takes_pools = true;
  add_option(
      *command, "--fidelity", options->fidelity, "NAME",
      "Fidelity level: bound, analytic, event (default) or full (every rank, with contention)",
      "Simulation");
  add_full_replay_options(*command, options->full);
  add_option(*command, "--trace", options->trace, "FILE|-",
             "Write a trace of the step for Perfetto (https://ui.perfetto.dev)", "Output");
  add_option(*command, "--timeline", options->timeline, "FILE|-",
             "Write the timeline of the step for shardwright gui", "Output");
  add_option(*command, "--out", options->plan_out, "FILE|-",
             "Write the plan file that was simulated", "Output");
  add_common_options(*command, options->common);
  command->callback([options, &action] { action = [options] { return simulate(*options); }; });
}

}  // namespace shardwright::cli
