#include "gui/models/run_forecast.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/quantity_reading.hpp"
#include "core/spec/pools.hpp"
#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"
#include "planner/run_search.hpp"
#include "planner/run_wording.hpp"
#include "validation/prediction_errors.hpp"

namespace shardwright::gui {
namespace {

using sim::RunPart;

constexpr std::size_t kPoints = 241;
constexpr double kJoulesPerMegawattHour = 3.6e9;

QString money_text(Dollars dollars) {
  return to_qstring(planner::money_text(dollars));
}

Dollars cost_of(const RunForecast& run) {
  return run.forecast.costs[run.request.run.price.contract];
}

QString eighty_percent(const QString& low, const QString& high) {
  return to_qstring("80 %: %1 to %2").arg(low, high);
}

RunFigure time_figure(const RunForecast& run) {
  const sim::Percentiles& wall = run.forecast.statistics.wall;
  return {to_qstring("Time"), long_time_text(Seconds(wall.p50)),
          eighty_percent(long_time_text(Seconds(wall.p10)), std::isfinite(wall.p90)
                                                                ? long_time_text(Seconds(wall.p90))
                                                                : to_qstring("no end")),
          to_qstring(
              "From the start to the last step: the median of %1 simulated runs, which differ by "
              "chance in their failures and in the error of the predicted step.")
              .arg(count_text(run.forecast.statistics.runs))};
}

// Names accelerators as the cluster of the run has them.
QString in_words(const RunForecast& run, const char* text) {
  return with_accelerator(to_qstring(text), accelerator_word(run.request.scenario.cluster));
}

RunFigure cost_figure(const RunForecast& run) {
  const planner::Forecast& forecast = run.forecast;
  const Contract contract = run.request.run.price.contract;
  QString tip =
      in_words(run, "All GPUs of the job and its spare nodes, over the mean time of a run.");
  if (cost_of(run) <= Dollars())
    return {to_qstring("Cost"), u"–"_s, to_qstring("no profile has a price"), tip};
  for (const Contract other : enumerators<Contract>()) {
    if (other != contract && forecast.costs[other] > Dollars())
      tip += u"\n%1: %2"_s.arg(to_qstring(planner::contract_text(other)),
                               money_text(forecast.costs[other]));
  }
  return {to_qstring("Cost"), money_text(cost_of(run)),
          to_qstring(planner::contract_text(contract)), tip};
}

RunFigure checkpoint_figure(const RunForecast& run) {
  const planner::Forecast& forecast = run.forecast;
  const sim::CheckpointCost& cost = forecast.model.checkpoint;
  QString tip =
      to_qstring("%1, %2; each stops the run for %3.")
          .arg(bytes_text(cost.bytes), to_qstring(name_of(run.request.run.checkpoint.kind)),
               long_time_text(cost.stall));
  if (std::isfinite(forecast.young_interval.value())) {
    tip +=
        to_qstring(" The interval of the shortest run is %1, by Young's formula %2, by Daly's %3.")
            .arg(long_time_text(forecast.best_interval), long_time_text(forecast.young_interval),
                 long_time_text(forecast.daly_interval));
  }
  return {to_qstring("Checkpoint"),
          to_qstring("every %1").arg(long_time_text(forecast.model.interval)),
          to_qstring("%1 in %2").arg(bytes_text(cost.bytes), long_time_text(cost.stall)), tip};
}

QString causes_text(const planner::Forecast& forecast) {
  std::vector<std::pair<double, FailureCause>> causes;
  for (const FailureCause cause : enumerators<FailureCause>()) {
    if (forecast.statistics.by_cause[cause] > 0.0)
      causes.emplace_back(forecast.statistics.by_cause[cause], cause);
  }
  std::ranges::stable_sort(causes, std::greater<>(), &std::pair<double, FailureCause>::first);
  QStringList lines = {to_qstring("Mean number of interruptions by their cause:")};
  for (const auto& [count, cause] : causes)
    lines.append(u"%1: %2"_s.arg(to_qstring(planner::cause_text(cause)), number_text(count)));
  return lines.join(u'\n');
}

TipSource simulated_runs() {
  return TipSource(u"many simulated runs of the plan with the failure rates of the run profile"_s);
}

QString share_tip(const QString& title, Seconds time, double share, Dollars cost) {
  std::vector<TipLine> lines = {{u"time"_s, long_time_text(time)},
                                {u"share of the run"_s, run_share_text(share)}};
  if (cost > Dollars()) lines.push_back({u"cost"_s, money_text(cost)});
  return tool_tip(title, simulated_runs(), lines);
}

void set_goal(const RunQuestion& question, RunForecast& run) {
  if (const auto* tokens = std::get_if<double>(&question.goal)) {
    run.request.tokens = *tokens;
    return;
  }
  const auto& goal = std::get<LossGoal>(question.goal);
  const ModelSpec& model = question.scenario.model;
  const Plan& plan = question.scenario.plan;
  const planner::TokenNeed need = planner::need_of_loss(goal.laws, model, goal.loss);
  run.request.tokens =
      need.at_batch(static_cast<double>(plan.global_batch) * static_cast<double>(plan.seq_len));
  run.laws = planner::laws_behind_tokens(goal.laws, model, need, true);
  run.is_outside_of_laws = !planner::outside_of_laws(goal.laws, model, need).empty();
}

}  // namespace

Dollars RunForecast::cost_after(Seconds time) const {
  return cost_of(*this) * (time / forecast.statistics.mean_wall());
}

QString run_share_text(double share) {
  const double percent = 100.0 * share;
  if (percent > 0.0 && percent < 0.01) return u"< 0.01 %"_s;
  return fixed_text(percent, 2) + u" %"_s;
}

RunForecast forecast_run(const RunQuestion& question, const std::function<void(double)>& progress,
                         const std::stop_token& stop) {
  RunForecast run;
  planner::ForecastRequest& request = run.request;
  request.scenario = question.scenario;
  request.run = question.run;
  request.run_file = question.run_file;
  set_goal(question, run);
  request.options.stop = stop;
  request.progress = progress;
  planner::StepSpread spread;
  if (const auto interval =
          validation::step_interval(Seconds(1.0), validation::class_of(question.scenario)))
    spread = {interval->low.value(), interval->high.value()};
  run.forecast = planner::forecast(request, planner::run_stages(request), spread);
  if (!stop.stop_requested())
    run.trajectory = planner::trajectory(request, run.forecast, spread, kPoints);
  request.progress = nullptr;
  return run;
}

std::optional<double> tokens_of(const QString& text) {
  constexpr std::int64_t kMost = 1'000'000'000'000'000;
  const auto count = parse_tokens(text.trimmed().toStdString());
  if (!count || *count < 1 || *count > kMost) return std::nullopt;
  return static_cast<double>(*count);
}

QString tokens_text(double tokens) {
  return to_qstring("%1 tokens").arg(to_qstring(planner::tokens_text(tokens)));
}

std::vector<RunFigure> run_figures(const RunForecast& run) {
  const planner::Forecast& forecast = run.forecast;
  const sim::Percentiles& stops = forecast.statistics.interruptions;
  const Joules energy = forecast.total().energy + forecast.spares.energy;
  return {
      time_figure(run),
      {in_words(run, "GPU-hours"), number_text(forecast.total().gpu_hours),
       forecast.model.spare_nodes() > 0
           ? to_qstring("and %1 for spares").arg(number_text(forecast.spares.gpu_hours))
           : counted_text(forecast.gpus, accelerator_word(run.request.scenario.cluster)),
       in_words(run,
                "The GPUs of the job over the mean time of a run, and beside them those of %1.")
           .arg(counted_text(forecast.model.spare_nodes(), "spare node"))},
      cost_figure(run),
      {to_qstring("Energy"),
       to_qstring("%1 MWh").arg(number_text(energy.value() / kJoulesPerMegawattHour)),
       to_qstring("with cooling: × %1").arg(number_text(forecast.power_usage_effectiveness)),
       to_qstring("Of the nodes, times the power usage effectiveness of the building.")},
      {to_qstring("Goodput"), percent_text(forecast.goodput),
       to_qstring("MFU %1").arg(percent_text(forecast.mfu)),
       in_words(
           run,
           "The share of the time that goes into steps which are kept, and the share of the GPUs' "
           "peak rate that the run uses over all of its time.")},
      {to_qstring("Interruptions"), number_text(stops.p50),
       eighty_percent(number_text(stops.p10), number_text(stops.p90)), causes_text(forecast)},
      checkpoint_figure(run),
  };
}

QStringList warnings(const RunForecast& run) {
  QStringList lines;
  const sim::RunStatistics& all = run.forecast.statistics;
  if (all.unfinished > 0) {
    lines.append(to_qstring("%1 of %2 simulated runs do not end, because failures leave them no "
                            "progress; means are those of the others.")
                     .arg(count_text(all.unfinished), count_text(all.runs)));
  }
  const ClusterSpec& cluster = run.request.scenario.cluster;
  if (const auto* stage = planner::stage_beyond_memory(run.forecast.stages, cluster)) {
    const AcceleratorSpec accelerator =
        stage_cluster(cluster, stage->plan, stage->step.fullest).accelerator;
    lines.append(
        to_qstring("The run does not fit into memory: stage %1 needs %2 per accelerator, and %3 "
                   "has %4.")
            .arg(to_qstring(stage->name), to_qstring(format_bytes(stage->step.memory().peak)),
                 to_qstring(accelerator.name), to_qstring(format_bytes(accelerator.memory))));
  }
  for (const std::string& note : planner::recovery_without_effect(
           run.request.run.recovery, run.request.scenario.plan, run.forecast.model))
    lines.append(to_qstring(note));
  return lines;
}

QString tokens_of_loss_text(const RunForecast& run) {
  if (run.laws.empty()) return {};
  const QString text = to_qstring("The loss takes %1 with the batch of the plan.")
                           .arg(tokens_text(run.request.tokens));
  return run.is_outside_of_laws
             ? text + to_qstring(
                          " ⚠ The run lies outside of what the laws behind this number were "
                          "fitted to: see below the charts.")
             : text;
}

QString laws_text(const RunForecast& run) {
  if (run.laws.empty()) return {};
  QStringList lines = {to_qstring(planner::kLawsTitle) + u':'};
  for (const std::string& law : run.laws) lines.append(u"• "_s + to_qstring(law));
  return lines.join(u'\n');
}

std::vector<RunShare> lost_times(const RunForecast& run) {
  const planner::Forecast& forecast = run.forecast;
  const Seconds wall = forecast.statistics.mean_wall();
  std::vector<RunShare> shares;
  for (const RunPart part : enumerators<RunPart>()) {
    const Seconds time = forecast.statistics.mean[part];
    if (part == RunPart::Step || time <= Seconds()) continue;
    const QString title = to_qstring(planner::part_text(part));
    shares.push_back({title, share_tip(title, time, time / wall, forecast.expenses[part].cost),
                      time / wall, part});
  }
  std::ranges::stable_sort(shares, std::greater<>(), &RunShare::share);
  return shares;
}

std::vector<RunShare> worthwhile_gains(const RunForecast& run) {
  std::vector<RunShare> shares;
  const Seconds wall = run.forecast.statistics.mean_wall();
  for (const planner::RunGain& gain : run.forecast.gains) {
    if (gain.share < planner::kLeastGain) continue;
    const QString title = to_qstring(planner::gain_text(gain.name));
    std::vector<TipLine> lines = {{u"shorter by"_s, long_time_text(gain.share * wall)},
                                  {u"share of the run"_s, run_share_text(gain.share)}};
    const Dollars saved = run.cost_after(gain.share * wall);
    if (saved > Dollars()) lines.push_back({u"cheaper by"_s, money_text(saved)});
    shares.push_back({title, tool_tip(u"10 % less of "_s + title, simulated_runs(), lines),
                      gain.share, std::nullopt});
  }
  return shares;
}

QString interruption_text(const RunForecast& run, const sim::RunInterruption& interruption) {
  const Seconds at = interruption.time;
  const Seconds whole = run.trajectory.median.spans.back().end;
  const auto with_share = [&](Seconds time) {
    return to_qstring("%1, %2 of the run").arg(long_time_text(time), run_share_text(time / whole));
  };
  std::vector<TipLine> lines = {
      {u"lost work"_s,
       interruption.lost > Seconds()
           ? to_qstring("%1 since the last checkpoint").arg(with_share(interruption.lost))
           : u"none"_s}};
  for (const sim::RunSpan& span : run.trajectory.median.spans) {
    if (span.begin < at || span.part == RunPart::Step) continue;
    lines.push_back({to_qstring(planner::part_text(span.part)), with_share(span.end - span.begin)});
    if (span.part == RunPart::Restart || span.part == RunPart::Startup) break;
  }
  return tool_tip(to_qstring("Interruption by %1 on day %2")
                      .arg(to_qstring(planner::cause_text(interruption.cause)),
                           fixed_text(at.value() / kSecondsPerDay, 2)),
                  simulated_runs(), lines);
}

QString progress_text(const RunForecast& run, Seconds time) {
  const sim::RunTrajectory& course = run.trajectory;
  const auto later = std::ranges::lower_bound(course.times, time);
  const auto index = static_cast<std::size_t>(
      std::min(later - course.times.begin(), std::ssize(course.times) - 1));
  const sim::Percentiles& done = course.progress[index];
  const auto trained = [&](double share) {
    return to_qstring(planner::tokens_text(run.forecast.tokens_at(share)));
  };
  const double median = course.median.progress_at(time);
  std::vector<TipLine> lines = {
      {u"half of the runs have trained"_s,
       to_qstring("%1 (%2) or more")
           .arg(tokens_text(run.forecast.tokens_at(done.p50)), percent_text(done.p50))},
      {u"80 % of them"_s, to_qstring("%1 to %2").arg(trained(done.p10), trained(done.p90))},
      {u"the run of median length"_s,
       u"%1 (%2)"_s.arg(tokens_text(run.forecast.tokens_at(median)), percent_text(median))}};
  if (const Dollars cost = run.cost_after(time); cost > Dollars())
    lines.push_back({u"spent so far"_s, money_text(cost)});
  return tool_tip(to_qstring("Day %1").arg(fixed_text(time.value() / kSecondsPerDay, 1)),
                  simulated_runs(), lines);
}

QString uses_text(const sim::RunTimes& times, Seconds begin, Seconds end) {
  const auto day = [](Seconds time) { return fixed_text(time.value() / kSecondsPerDay, 2); };
  std::vector<TipLine> lines;
  std::vector<std::pair<Seconds, RunPart>> parts;
  for (const RunPart part : enumerators<RunPart>())
    if (times[part] > Seconds()) parts.emplace_back(times[part], part);
  std::ranges::stable_sort(parts, std::greater<>(), &std::pair<Seconds, RunPart>::first);
  for (const auto& [time, part] : parts) {
    lines.push_back(
        {to_qstring(planner::part_text(part)),
         u"%1 (%2)"_s.arg(percent_text(time / sim::total(times)), long_time_text(time))});
  }
  return tool_tip(to_qstring("The run of median length, day %1 to %2").arg(day(begin), day(end)),
                  simulated_runs(), lines);
}

TextTable table_of(const RunForecast& run) {
  const planner::Forecast& forecast = run.forecast;
  const sim::RunStatistics& all = forecast.statistics;
  TextTable table{{to_qstring("Of"), to_qstring("Part"), to_qstring("Value"), to_qstring("Low"),
                   to_qstring("High"), to_qstring("Unit")},
                  {}};
  const auto add = [&](const QString& of, const QString& part, double value, const char* unit,
                       std::optional<std::pair<double, double>> range = std::nullopt) {
    table.rows.push_back({of, part, exact_text(value), range ? exact_text(range->first) : QString(),
                          range ? exact_text(range->second) : QString(), to_qstring(unit)});
  };
  add(to_qstring("run"), to_qstring("tokens"), run.request.tokens, "tokens");
  add(to_qstring("run"), to_qstring("time"), all.wall.p50, "s",
      std::pair(all.wall.p10, all.wall.p90));
  add(to_qstring("run"), in_words(run, "GPU-hours"), forecast.total().gpu_hours, "h");
  if (cost_of(run) > Dollars())
    add(to_qstring("run"), to_qstring("cost"), cost_of(run).value(), "USD");
  add(to_qstring("run"), to_qstring("energy"),
      (forecast.total().energy + forecast.spares.energy).value(), "J");
  add(to_qstring("run"), to_qstring("goodput"), forecast.goodput, "ratio");
  add(to_qstring("run"), to_qstring("MFU"), forecast.mfu, "ratio");
  add(to_qstring("run"), to_qstring("interruptions"), all.interruptions.p50, "",
      std::pair(all.interruptions.p10, all.interruptions.p90));
  for (const RunPart part : enumerators<RunPart>())
    add(to_qstring("mean time"), to_qstring(planner::part_text(part)), all.mean[part].value(), "s");
  for (const FailureCause cause : enumerators<FailureCause>())
    add(to_qstring("mean interruptions"), to_qstring(planner::cause_text(cause)),
        all.by_cause[cause], "");
  for (const planner::RunGain& gain : forecast.gains)
    add(to_qstring("10 % less of"), to_qstring(planner::gain_text(gain.name)), gain.share, "ratio");
  const sim::RunTrajectory& course = run.trajectory;
  for (std::size_t i = 0; i < course.times.size(); ++i) {
    const auto trained = [&](double share) { return forecast.tokens_at(share); };
    const sim::Percentiles& done = course.progress[i];
    add(to_qstring("tokens after"), to_qstring("%1 s").arg(exact_text(course.times[i].value())),
        trained(done.p50), "tokens", std::pair(trained(done.p10), trained(done.p90)));
  }
  return table;
}

}  // namespace shardwright::gui
