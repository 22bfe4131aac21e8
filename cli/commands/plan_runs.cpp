// shardwright plan for a whole run whose number of GPUs or batch is open
#include "cli/commands/plan_runs.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/commands/interrupt.hpp"
#include "cli/output/candidate_report.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/pool_report.hpp"
#include "cli/output/step_json.hpp"
#include "cli/output/step_page.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/plan_json.hpp"
#include "planner/run_search.hpp"
#include "planner/scale.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;
using planner::RunChoice;
using planner::RunSearch;

constexpr double kJoulesPerKilowattHour = 3.6e6;

std::string count_text(double count) {
  return format_parameters(static_cast<std::int64_t>(std::llround(count)));
}

std::string days(double seconds) {
  return format_number(seconds / kSecondsPerDay);
}

double energy_kwh(const RunChoice& choice) {
  return (choice.forecast.total().energy + choice.forecast.spares.energy).value() /
         kJoulesPerKilowattHour;
}

std::size_t best_of(const RunSearch& search, planner::Objective objective) {
  return objective == planner::Objective::Cost ? search.cheapest : search.fastest;
}

Table choice_table(const RunSearch& search) {
  Table table({{"GPUs", kNumber},
               {"batch", kNumber, "sequences"},
               {"tokens", kNumber},
               {"time", kNumber, "days"},
               {"GPU-hours", kNumber},
               {"cost", kNumber},
               {"energy", kNumber, "MWh"},
               {"MFU", kNumber, "%"},
               {"plan", ColumnKind::Prose}});
  for (const std::size_t index : search.front) {
    const RunChoice& choice = search.choices[index];
    table.add_row({format_count(choice.gpus), format_count(choice.plan.plan.global_batch),
                   count_text(choice.tokens), days(choice.time().value()),
                   count_text(choice.forecast.total().gpu_hours),
                   choice.cost > Dollars() ? "$" + count_text(choice.cost.value()) : "",
                   format_number(energy_kwh(choice) / 1000.0),
                   format_percent(choice.plan.result.throughput.mfu), plan_text(choice.plan.plan)});
  }
  return table;
}

std::string need_text(const ChosenRun& run, const planner::TokenNeed& need) {
  const std::string law = fmt::format("batch profile {}", run.batch.name);
  if (run.target_loss) {
    return fmt::format("to a loss of {} nats: {} tokens with small batches, by {}",
                       format_number(need.loss, 4), count_text(need.least), law);
  }
  return fmt::format("{} tokens{}, to a loss of {} nats by {}", count_text(need.least),
                     need.critical > 0.0 ? " with small batches" : "", format_number(need.loss, 4),
                     law);
}

std::string batch_text(double tokens, std::int64_t seq_len) {
  const double sequences = tokens / static_cast<double>(seq_len);
  return fmt::format("{} tokens ({})", count_text(tokens),
                     format_plural(std::llround(sequences), "sequence"));
}

// Where knee and critical batch lie at a choice, and which of them binds.
std::string limit_text(const RunSearch& search, const RunChoice& choice,
                       const planner::TokenNeed& need) {
  const std::int64_t seq_len = choice.plan.plan.seq_len;
  std::string text =
      fmt::format("On {} GPUs throughput has its knee at {}{}", format_count(choice.gpus),
                  search.is_knee_open(choice) ? "the largest batch tried, or beyond: " : "",
                  batch_text(static_cast<double>(search.knee_of(choice) * seq_len), seq_len));
  if (need.critical > 0.0) {
    text += fmt::format(
        "; the critical batch is {}, {}, so that the batch of {} needs {} % more tokens "
        "than small ones",
        batch_text(need.critical, seq_len), need.critical_source,
        format_count(choice.plan.plan.global_batch),
        format_percent(choice.tokens / need.least - 1.0));
  }
  switch (search.limit_of(choice)) {
    case planner::BatchLimit::CriticalBatch:
      return text +
             ". The critical batch binds: a larger batch would run faster, but not reach the "
             "end sooner.";
    case planner::BatchLimit::ThroughputKnee:
      return text + ". The throughput knee binds: a larger batch would gain little speed.";
    case planner::BatchLimit::Largest:
      break;
  }
  return text + ". No larger batch was tried.";
}

// Rules for the learning rate are told and not applied.
void add_learning_rate(Page& page, const ChosenRun& run, const ModelSpec& model,
                       const planner::TokenNeed& need) {
  const LearningRateSpec& rule = run.batch.learning_rate;
  if (rule.coefficient <= 0.0) return;
  const double rate = learning_rate_of(rule, counted_parameters(model, false), need.least);
  page.paragraph(fmt::format(
      "Learning rate, which Shardwright does not set: a peak of {:.2g} by the rule of the profile; "
      "where the batch changes within the run, in proportion to batch^{}.",
      rate, format_number(rule.batch_exponent)));
}

void add_search(Page& page, const ChosenRequest& chosen, const ChosenRun& run,
                const RunSearch& search, const planner::TokenNeed& need) {
  const planner::PlanRequest& request = chosen.request;
  const RunChoice& fastest = search.choices[search.fastest];
  const RunChoice& cheapest = search.choices[search.cheapest];
  page.heading(fmt::format("{} on {}, {}", request.model.name, hardware_text(request.cluster),
                           request.stack.name));
  page.facts({{"run", need_text(run, need)}, {"run profile", run.request.run.name}});
  page.table(choice_table(search));
  page.paragraph(fmt::format(
      "These are the best of {} of GPUs and batch: no other is both faster and cheaper. The "
      "fastest "
      "takes {} days on {} GPUs, the cheapest {} days on {}.",
      format_plural(std::ssize(search.choices), "choice"), days(fastest.time().value()),
      format_count(fastest.gpus), days(cheapest.time().value()), format_count(cheapest.gpus)));
  if (request.global_batch == 0)
    page.paragraph(limit_text(search, search.choices[best_of(search, request.objective)], need));
  add_learning_rate(page, run, request.model, need);
  const std::vector<std::string> outside = planner::outside_of_laws(run.batch, request.model, need);
  if (!outside.empty()) {
    page.heading("Laws that this run lies outside of");
    page.bullets(outside);
  }
  for (const std::string& line : planner::left_out(search, need)) page.warning(line);
  if (search.partial) page.warning("interrupted: these are the choices searched so far");
  add_assumptions(page, request, chosen.cluster, chosen.filled_in);
}

ordered_json choice_json(const RunSearch& search, const RunChoice& choice) {
  const sim::Percentiles& wall = choice.forecast.statistics.wall;
  return {
      {"gpus", choice.gpus},
      {"global_batch", choice.plan.plan.global_batch},
      {"tokens", choice.tokens},
      {"step_s", choice.plan.result.step.value()},
      {"mfu", choice.plan.result.throughput.mfu},
      {"days",
       {{"p10", wall.p10 / kSecondsPerDay},
        {"p50", wall.p50 / kSecondsPerDay},
        {"p90", wall.p90 / kSecondsPerDay}}},
      {"gpu_hours", choice.forecast.total().gpu_hours},
      {"cost_usd", choice.cost > Dollars() ? ordered_json(choice.cost.value()) : ordered_json()},
      {"energy_kwh", energy_kwh(choice)},
      {"goodput", choice.forecast.goodput},
      {"knee_global_batch", search.knee_of(choice)},
      {"batch_limit", name_of(search.limit_of(choice))},
      {"plan", to_json(choice.plan.plan)}};
}

ordered_json search_json(const ChosenRequest& chosen, const ChosenRun& run, const RunSearch& search,
                         const planner::TokenNeed& need) {
  const planner::PlanRequest& request = chosen.request;
  ordered_json document = new_document("run-search");
  document["inputs"] = inputs_json(request.model, request.cluster, request.stack);
  document["filled_in"] = chosen.filled_in;
  document["objective"] = name_of(request.objective);
  document["partial"] = search.partial;
  document["without_stages"] = search.without_stages;
  document["too_many_tokens"] = search.too_many_tokens;
  document["without_end"] = search.without_end;
  document["need"] = {
      {"least_tokens", need.least},
      {"loss_nats", need.loss},
      {"critical_batch_tokens", need.critical},
      {"critical_batch_source", need.critical_source},
      {"learning_rate", learning_rate_of(run.batch.learning_rate,
                                         counted_parameters(request.model, false), need.least)},
      {"outside", planner::outside_of_laws(run.batch, request.model, need)}};
  document["batch_profile"] = run.batch.name;
  document["run_profile"] = run.request.run.name;
  ordered_json choices = ordered_json::array();
  for (const RunChoice& choice : search.choices) choices.push_back(choice_json(search, choice));
  document["choices"] = std::move(choices);
  document["front"] = search.front;
  const bool any = !search.choices.empty();
  document["fastest"] = any ? ordered_json(search.fastest) : ordered_json();
  document["cheapest"] = any ? ordered_json(search.cheapest) : ordered_json();
  add_parts(document, request.model, request.cluster, request.stack);
  return document;
}

}  // namespace

ExitCode plan_runs(const CommonOptions& options, const ChosenRequest& chosen, const ChosenRun& run,
                   const std::string& plan_out) {
  if (chosen.request.objective == planner::Objective::Memory)
    throw InputError(run.command, {{"--objective", "memory",
                                    "time, cost or tokens-per-joule for a run whose GPUs or batch "
                                    "are open: the plan with the lowest peak trains slowly"}});
  const InterruptWatch interrupt;
  planner::RunSearchRequest request;
  request.plan = chosen.request;
  request.plan.stop = interrupt.token();
  request.gpus = chosen.sizes;
  request.run = run.request;
  request.run.options.threads = chosen.request.threads;
  request.need = run.need_of(chosen.request.model);
  // Stated tokens are trained as they are with a stated batch.
  if (!run.target_loss && chosen.request.global_batch > 0) request.need.critical = 0.0;
  request.step_error = step_spread_of;
  const RunSearch search = planner::search_runs(request);
  Page page = new_page(options, chosen.request.cluster);
  const ordered_json document = search_json(chosen, run, search, request.need);
  if (search.choices.empty()) {
    const std::vector<std::string> left_out = planner::left_out(search, request.need);
    for (const std::string& line : left_out) page.warning(line);
    if (search.partial) {
      page.warning("interrupted before a plan was found");
    } else if (left_out.empty()) {
      page.warning("no plan fits any of these numbers of GPUs and batches");
    }
    deliver(options, page, document);
    return search.partial ? ExitCode::Interrupted : ExitCode::NoFeasiblePlan;
  }
  const RunChoice& best = search.choices[best_of(search, chosen.request.objective)];
  if (!plan_out.empty()) {
    planner::PlanRequest of_best = request.plan;
    of_best.gpus = best.gpus;
    write_file(plan_out, json_text(to_json(planner::scenario_of(of_best, best.plan.plan))),
               options.force);
  }
  add_search(page, chosen, run, search, request.need);
  deliver(options, page, document, plan_out == "-");
  return search.partial ? ExitCode::Interrupted : ExitCode::Ok;
}

}  // namespace shardwright::cli
