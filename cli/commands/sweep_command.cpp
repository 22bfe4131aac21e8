// shardwright sweep
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/command.hpp"
#include "cli/commands/interrupt.hpp"
#include "cli/commands/sweep_study.hpp"
#include "cli/options/option_values.hpp"
#include "cli/options/request_options.hpp"
#include "cli/options/scenario_options.hpp"
#include "cli/output/candidate_report.hpp"
#include "cli/output/figures.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/pool_report.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/step_json.hpp"
#include "cli/output/step_page.hpp"
#include "core/base/nearest_name.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/plan_check.hpp"
#include "planner/scale.hpp"
#include "planner/sweep.hpp"
#include "planner/wording.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;
using planner::Sweep;
using planner::SweepAxis;
using planner::SweepPlan;
using planner::SweepPoint;

constexpr const char* kSweepCommand = "shardwright sweep";

struct SweepOptions {
  CommonOptions common;
  std::string quantity, plan_file, values;
  // A study and its shares take the place of a quantity.
  std::string study, shard;
  std::vector<std::string> merge;
  RequestOptions request;
  // The names of the options of `request` that are stated.
  std::vector<std::string> stated;
};

// The sweep, and what its page says besides.
struct ChosenSweep {
  planner::SweepRequest sweep;
  std::string cluster;
  std::vector<std::string> filled_in;
  std::vector<std::string> notes;
};

// The values of --values, in gigabytes per second where they are bandwidths.
std::vector<double> read_values(SweepAxis axis, const std::string& text, ProblemList& problems) {
  std::vector<double> values;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string value(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (planner::is_bandwidth(axis)) {
      char* end = nullptr;
      const double rate = std::strtod(value.c_str(), &end);
      const bool is_rate = end != value.c_str() && *end == '\0' && std::isfinite(rate) && rate > 0;
      if (!is_rate)
        problems.add("--values", fmt::format("\"{}\"", value), "gigabytes per second above 0");
      values.push_back(rate * 1e9);
    } else {
      const std::int64_t most = axis == SweepAxis::Gpus     ? kMaxWorld
                                : axis == SweepAxis::SeqLen ? kMaxSeqLen
                                                            : kMaxBatch;
      values.push_back(static_cast<double>(read_count("--values", value, most, problems)));
    }
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

// `beside`: an option with whose file no other option but the number of threads changes the
// scenario; `why` says so.
void refuse_request_options(const SweepOptions& options, const char* beside, const char* why,
                            ProblemList& problems) {
  for (const std::string& option : options.stated) {
    if (option != "--threads")
      problems.add(option, fmt::format("beside {}", beside),
                   fmt::format("no such option: {}", why));
  }
}

void choose_given_plan(const std::string& plan_file, ChosenSweep& chosen) {
  ScenarioOptions scenario;
  scenario.plan_file = plan_file;
  scenario.takes_pools = true;
  ChosenScenario given = choose_scenario(scenario, kSweepCommand);
  chosen.sweep.plan = SweepPlan::Chosen;
  chosen.sweep.scenario = std::move(given.scenario);
  chosen.filled_in = std::move(given.filled_in);
  chosen.notes = std::move(given.notes);
  chosen.cluster = chosen.sweep.scenario.cluster.name;
  chosen.sweep.request.model = chosen.sweep.scenario.model;
  chosen.sweep.request.cluster = chosen.sweep.scenario.cluster;
  chosen.sweep.request.stack = chosen.sweep.scenario.stack;
}

void choose_best_plans(const SweepOptions& options, ChosenSweep& chosen, ProblemList& problems) {
  ChosenRequest request = choose_request(options.request, kSweepCommand);
  const bool is_range = request.gpus.first != request.gpus.second;
  if (is_range && chosen.sweep.axis != SweepAxis::Gpus)
    problems.add("--gpus", fmt::format("\"{}\"", options.request.gpus), "one number of GPUs");
  if (is_range && chosen.sweep.values.empty())
    chosen.sweep.values.assign(request.sizes.begin(), request.sizes.end());
  chosen.sweep.plan = SweepPlan::Best;
  chosen.sweep.scenario = planner::scenario_of(request.request, Plan());
  chosen.sweep.request = std::move(request.request);
  chosen.cluster = std::move(request.cluster);
  chosen.filled_in = std::move(request.filled_in);
}

ChosenSweep choose_sweep(const SweepOptions& options) {
  ProblemList problems(kSweepCommand);
  ChosenSweep chosen;
  if (options.quantity.empty())
    problems.add(
        "QUANTITY", "missing",
        fmt::format("one of {}, or --study or --merge", fmt::join(names_of<SweepAxis>(), ", ")));
  if (!options.shard.empty())
    problems.add("--shard", fmt::format("\"{}\"", options.shard), "--study beside it");
  problems.throw_if_any();
  chosen.sweep.axis = parse_name<planner::SweepAxis>(options.quantity, "QUANTITY");
  chosen.sweep.values = read_values(chosen.sweep.axis, options.values, problems);
  const bool is_given = !options.plan_file.empty();
  if (!options.request.top.empty())
    problems.add("--top", options.request.top, "no such option: each value has one plan");
  if (is_given) refuse_request_options(options, "--plan", "the plan is swept as it is", problems);
  if (is_given && chosen.sweep.axis == SweepAxis::Gpus)
    problems.add("--plan", "a plan, which has one number of GPUs",
                 "no plan: the best are searched");
  problems.throw_if_any();
  if (is_given) {
    choose_given_plan(options.plan_file, chosen);
  } else {
    choose_best_plans(options, chosen, problems);
  }
  problems.throw_if_any();
  return chosen;
}

struct AxisWords {
  const char* title;
  const char* unit;
};

constexpr EnumArray<SweepAxis, AxisWords> kAxisWords = {{{{"GPUs", ""},
                                                          {"global batch", "sequences"},
                                                          {"sequence length", "tokens"},
                                                          {"bandwidth of a NIC", "GB/s"},
                                                          {"scale-up bandwidth", "GB/s"},
                                                          {"memory bandwidth", "GB/s"}}}};

Table point_table(const ChosenSweep& chosen, const Sweep& sweep) {
  const AxisWords words = kAxisWords[sweep.axis];
  Table table({{words.title, kNumber, words.unit},
               {"step", kNumber, "s"},
               {"tokens/s", kNumber},
               {"MFU", kNumber, "%"},
               {"memory", kNumber, "GB"},
               {"exposed", kNumber, "%"},
               {"bubble", kNumber, "%"},
               {sweep.plan == SweepPlan::Best ? "plan" : "note", ColumnKind::Prose}});
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const SweepPoint& point = sweep.points[i];
    std::string note = planner::obstacle_text(point, chosen.sweep.scenario.cluster);
    if (point.fits && sweep.plan == SweepPlan::Best) note = plan_text(point.candidate->plan);
    if (sweep.knee == i) note += note.empty() ? "knee" : " (knee)";
    const std::string value = planner::value_text(sweep.axis, point.value);
    if (!point.candidate) {
      table.add_row({value, "", "", "", "", "", "", note});
      continue;
    }
    const sim::StepResult& result = point.candidate->result;
    table.add_row({value, format_number(result.step.value(), 4),
                   format_fixed(point.tokens_per_s(), 0), format_percent(result.throughput.mfu),
                   format_gigabytes(result.memory().peak),
                   format_percent(result.time().exposed_total() / result.step),
                   format_percent(result.time().bubble / result.step), note});
  }
  return table;
}

std::string throughput_figure(const Sweep& sweep, const ClusterSpec& cluster) {
  std::vector<CurvePoint> points;
  for (const SweepPoint& point : sweep.points) {
    if (point.candidate)
      points.push_back({point.value, point.tokens_per_s(),
                        planner::value_text(sweep.axis, point.value),
                        format_fixed(point.tokens_per_s(), 0)});
  }
  const AxisWords words = kAxisWords[sweep.axis];
  const std::string title =
      fmt::format("{}{}{}", words.title, *words.unit == '\0' ? "" : ", ", words.unit);
  return curve_figure(points, planner::with_accelerator(title, planner::accelerator_word(cluster)),
                      "tokens/s");
}

ordered_json sweep_json(const ChosenSweep& chosen, const Sweep& sweep) {
  const Scenario& scenario = chosen.sweep.scenario;
  ordered_json document = new_document("sweep");
  document["inputs"] = inputs_json(scenario.model, scenario.cluster, scenario.stack);
  document["filled_in"] = chosen.filled_in;
  document["notes"] = chosen.notes;
  document["quantity"] = name_of(sweep.axis);
  document["unit"] =
      planner::is_bandwidth(sweep.axis) ? "bytes_per_s" : kAxisWords[sweep.axis].unit;
  document["swept_plan"] = sweep.plan == SweepPlan::Best ? "best" : "given";
  document["partial"] = sweep.partial;
  document["points"] = ordered_json::array();
  for (const SweepPoint& point : sweep.points) {
    ordered_json json = {{"value", point.value}, {"fits", point.fits}};
    json["why_not"] = planner::obstacle_text(point, chosen.sweep.scenario.cluster);
    json["tokens_per_s"] = point.candidate ? ordered_json(point.tokens_per_s()) : ordered_json();
    json["best"] =
        point.candidate
            ? candidate_json(*point.candidate,
                             planner::scenario_of(chosen.sweep.request, point.candidate->plan))
            : ordered_json();
    document["points"].push_back(std::move(json));
  }
  document["knee"] = sweep.knee ? ordered_json(sweep.points[*sweep.knee].value) : ordered_json();
  document["chosen_global_batch"] =
      sweep.chosen_batch ? ordered_json(*sweep.chosen_batch) : ordered_json();
  add_parts(document, scenario.model, scenario.cluster, scenario.stack);
  return document;
}

void add_sweep(Page& page, const ChosenSweep& chosen, const Sweep& sweep) {
  const Scenario& scenario = chosen.sweep.scenario;
  page.heading(fmt::format("{} on {}, {}: {} varied", scenario.model.name,
                           hardware_text(scenario.cluster), scenario.stack.name,
                           kAxisWords[sweep.axis].title));
  page.facts({{"plan", sweep.plan == SweepPlan::Best ? "the best of each point"
                                                     : plan_text(scenario.plan)}});
  if (sweep.partial) page.warning("interrupted: the points so far");
  page.table(point_table(chosen, sweep));
  if (sweep.chosen_batch) {
    page.paragraph(fmt::format("All train {} per step, the throughput knee on {} GPUs.",
                               format_plural(*sweep.chosen_batch, "sequence"),
                               planner::value_text(sweep.axis, sweep.points.back().value)));
  }
  if (!sweep.partial) page.paragraph(planner::knee_text(sweep, scenario.cluster));
  if (sweep.plan == SweepPlan::Best) {
    add_assumptions(page, chosen.sweep.request, chosen.cluster, chosen.filled_in);
  } else {
    add_filled_in(page, chosen.filled_in);
  }
}

// Searches for the plan whose batch and bandwidths are the centre of the usual values. False if no
// plan fits, which is then said.
bool find_central_plan(planner::SweepRequest& sweep, bool shows_progress) {
  if (sweep.plan == SweepPlan::Chosen || sweep.axis == SweepAxis::Gpus) return true;
  SearchProgressLine progress(shows_progress, sweep.request);
  planner::SearchResult found = planner::search(sweep.request);
  if (found.infeasible) report_infeasible(sweep.request, *found.infeasible);
  if (found.plans.empty()) return false;
  sweep.scenario.plan = found.plans.front().plan;
  return true;
}

// The scenarios of a study are those of its file.
ExitCode study(const SweepOptions& options) {
  const bool merges = !options.merge.empty();
  const char* own = merges ? "--merge" : "--study";
  const char* why = "the file states the scenarios";
  ProblemList problems(kSweepCommand);
  refuse_request_options(options, own, why, problems);
  const auto refuse = [&](const char* option, const std::string& value) {
    if (!value.empty())
      problems.add(option, fmt::format("beside {}", own), fmt::format("no such option: {}", why));
  };
  refuse("QUANTITY", options.quantity);
  refuse("--values", options.values);
  refuse("--plan", options.plan_file);
  if (merges) refuse("--study", options.study);
  if (merges) refuse("--shard", options.shard);
  problems.throw_if_any();
  return merges ? merge_study(options.common, options.merge)
                : run_study(options.common, options.study, options.shard, options.request.threads);
}

ExitCode sweep(const SweepOptions& options) {
  if (!options.study.empty() || !options.merge.empty()) return study(options);
  check_destination("--json", options.common.json, options.common.force);
  ChosenSweep chosen = choose_sweep(options);
  const InterruptWatch interrupt;
  chosen.sweep.request.stop = interrupt.token();
  const bool shows_progress = show_progress(options.common);
  const bool has_plan = find_central_plan(chosen.sweep, shows_progress);
  if (!has_plan && !interrupt.interrupted()) return ExitCode::NoFeasiblePlan;
  Sweep result;
  {
    ProgressLine line(shows_progress);
    planner::SweepWatch watch;
    const std::string text = fmt::format("sweeping {}", kAxisWords[chosen.sweep.axis].title);
    watch.progress = [&](double share) { line.show(share, text); };
    result = planner::run_sweep(chosen.sweep, watch);
  }
  print_notes(kSweepCommand, chosen.notes);
  if (result.lacks_link) {
    const ClusterSpec& cluster = chosen.sweep.scenario.cluster;
    throw InputError(kSweepCommand, {{"QUANTITY", fmt::format("\"{}\"", options.quantity),
                                      "another quantity. " +
                                          planner::lacking_link_text(chosen.sweep.axis, cluster)}});
  }
  Page page = new_page(options.common, chosen.sweep.scenario.cluster);
  add_sweep(page, chosen, result);
  page.figure("Throughput", throughput_figure(result, chosen.sweep.scenario.cluster));
  deliver(options.common, page, sweep_json(chosen, result));
  if (result.partial) return ExitCode::Interrupted;
  const bool any = std::any_of(result.points.begin(), result.points.end(),
                               [](const SweepPoint& point) { return point.fits; });
  return any ? ExitCode::Ok : ExitCode::NoFeasiblePlan;
}

}  // namespace

void add_sweep_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "sweep",
      "Simulate the step over several values of one quantity, and find the knee of its throughput");
  command->footer(
      R"(The best plan of each value is searched for; with --plan one plan is swept as it is.
Examples:
  shardwright sweep global-batch --model llama3-8b --cluster dgx-h100 \
      --gpus 64 --global-batch 256 --seq-len 8192
  shardwright sweep scale-out-bandwidth --plan plan.json --values 25,50,100
  shardwright sweep --study study.yaml --shard 3/16 --json share-3.json
  shardwright sweep --merge share-1.json --merge share-2.json --json study.json)");
  const auto options = std::make_shared<SweepOptions>();
  add_option(
      *command, "quantity", options->quantity, "QUANTITY",
      fmt::format("The quantity to vary: {}", fmt::join(names_of<planner::SweepAxis>(), ", ")));
  add_option(*command, "--plan", options->plan_file, "FILE",
             "Sweep the plan of this file as it is");
  add_option(*command, "--values", options->values, "V,...",
             "The values, bandwidths in GB/s (default: around the scenario's own)");
  add_option(*command, "--study", options->study, "FILE",
             "In place of a quantity, find the best plan of each scenario of a YAML or JSON file: "
             "options of plan, where "
             "a list stands for several values");
  add_option(*command, "--shard", options->shard, "I/N",
             "Only the I-th of N shares of a study, as for the tasks of a Slurm job array");
  add_option(*command, "--merge", options->merge, "FILE",
             "Put the JSON of all shares together (repeatable)");
  const std::size_t own_options = command->get_options().size();
  add_request_options(*command, options->request);
  const std::vector<CLI::Option*> all = command->get_options();
  const std::vector<const CLI::Option*> of_request(
      all.begin() + static_cast<std::ptrdiff_t>(own_options), all.end());
  add_common_options(*command, options->common);
  command->callback([options, of_request, &action] {
    for (const CLI::Option* option : of_request)
      if (option->count() > 0) options->stated.push_back(option->get_name());
    action = [options] { return sweep(*options); };
  });
}

}  // namespace shardwright::cli
