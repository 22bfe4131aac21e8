#include "cli/output/training_log_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "cli/output/figures.hpp"
#include "core/base/distinct_names.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/quantity_text.hpp"

namespace shardwright::cli {
namespace {

// A figure of a log's steps, which frameworks print or do not.
struct LoggedFigure {
  Column column;
  std::optional<double> (*of)(const calibration::LoggedStep& step);
};

std::vector<LoggedFigure> logged_figures() {
  using Step = const calibration::LoggedStep&;
  return {{{"TFLOP/s", kNumber, "per GPU"},
           [](Step step) {
             return step.flop_rate_per_gpu ? std::optional(step.flop_rate_per_gpu->value() * 1e-12)
                                           : std::nullopt;
           }},
          {{"tokens/s", kNumber, "per GPU"}, [](Step step) { return step.tokens_per_s_per_gpu; }},
          {{"samples/s", kNumber}, [](Step step) { return step.samples_per_s; }},
          {{"MFU", kNumber, "%"},
           [](Step step) { return step.mfu ? std::optional(100 * *step.mfu) : std::nullopt; }},
          {{"last loss", kNumber}, [](Step step) { return step.loss; }}};
}

// The last value that a log states.
std::optional<double> last_of(const LoggedFigure& figure, const calibration::TrainingLog& log) {
  std::optional<double> last;
  for (const calibration::LoggedStep& step : log.steps)
    if (const auto value = figure.of(step)) last = value;
  return last;
}

// Names the first step whose loss is infinite or no number.
void warn_of_lost_loss(Page& page, const calibration::TrainingLog& log, const std::string& name) {
  const auto is_lost = &calibration::LoggedStep::loss_is_lost;
  const auto first = std::ranges::find_if(log.steps, is_lost);
  if (first == log.steps.end()) return;
  page.warning(fmt::format("The loss in {} is not finite at {} of its steps, first at step {}.",
                           printable(name), format_count(std::ranges::count_if(log.steps, is_lost)),
                           format_count(first->number)));
}

// Says how often the run started and how much of it was lost.
void describe_attempts(Page& page, const calibration::TrainingLog& log, const std::string& name) {
  if (log.attempts == 1) return;
  page.paragraph(
      fmt::format("The run in {} started {} times. A later attempt repeated {} logged step{}, of "
                  "which the last "
                  "attempt counts.",
                  printable(name), format_count(log.attempts), format_count(log.repeated_steps),
                  log.repeated_steps == 1 ? "" : "s"));
}

// Says why a log has no times of steps, and how it gets some.
void describe_missing_times(Page& page, const calibration::TrainingLog& log,
                            const std::string& name) {
  const bool has_throughput = std::ranges::any_of(
      log.steps, [](const auto& step) { return step.tokens_per_s_per_gpu || step.samples_per_s; });
  page.paragraph(fmt::format(
      "The lines of {} state neither how long a step took nor when they were written.{}{}",
      printable(name),
      has_throughput ? " With a plan the times follow from the throughput that they state." : "",
      log.framework == "NeMo" ? " NeMo prints the times of its steps with its TimingCallback."
                              : ""));
}

bool any_times_from(const std::vector<calibration::TrainingLog>& logs,
                    calibration::StepTimes source) {
  return std::ranges::any_of(logs, [&](const auto& log) { return log.times_from == source; });
}

// As many digits as tell values apart that lie so far from each other.
int digits_between(double least, double most) {
  constexpr double kFewest = 4.0, kMost = 9.0;
  const double largest = std::max(std::abs(least), std::abs(most));
  if (most <= least) return static_cast<int>(kFewest);
  return static_cast<int>(
      std::clamp(2.0 + std::ceil(std::log10(largest / (most - least))), kFewest, kMost));
}

// A drawing of a figure of all steps over their numbers; nothing where fewer than two steps have
// it.
void add_curve(Page& page, const std::string& caption, const std::string& what,
               const calibration::TrainingLog& log,
               const std::function<std::optional<double>(const calibration::LoggedStep&)>& of) {
  // More of them would lie on each other.
  constexpr std::size_t kMostPoints = 2'000;
  std::vector<CurvePoint> points;
  const auto known = static_cast<std::size_t>(
      std::ranges::count_if(log.steps, [&](const auto& step) { return of(step).has_value(); }));
  std::size_t i = 0;
  for (const calibration::LoggedStep& step : log.steps) {
    const std::optional<double> value = of(step);
    if (value && i++ % (1 + known / kMostPoints) == 0)
      points.push_back({static_cast<double>(step.number), *value, format_count(step.number), ""});
  }
  if (points.size() < 2) return;
  const auto [least, most] = std::ranges::minmax_element(points, {}, &CurvePoint::y);
  for (CurvePoint& point : points)
    point.y_text = format_number(point.y, digits_between(least->y, most->y));
  page.figure(caption, curve_figure(points, "step", what, CurveAxes::Linear));
}

}  // namespace

void add_training_logs(Page& page, const std::vector<calibration::TrainingLog>& logs,
                       const std::optional<Seconds>& planned) {
  std::vector<LoggedFigure> figures = logged_figures();
  std::erase_if(figures, [&](const LoggedFigure& figure) {
    return std::none_of(logs.begin(), logs.end(), [&](const calibration::TrainingLog& log) {
      return last_of(figure, log).has_value();
    });
  });
  std::vector<Column> columns = {{"log"}, {"framework"}, {"steps", kNumber}, {"step", kNumber}};
  for (const LoggedFigure& figure : figures) columns.push_back(figure.column);
  Table table(columns);
  std::vector<std::string> files;
  for (const calibration::TrainingLog& log : logs) files.push_back(log.file);
  const std::vector<std::string> names = distinct_names(files);
  for (std::size_t i = 0; i < logs.size(); ++i) {
    const std::optional<Seconds> step = logs[i].step();
    std::vector<std::string> row = {printable(names[i]), logs[i].framework,
                                    format_count(static_cast<std::int64_t>(logs[i].steps.size())),
                                    step ? format_time(*step) : ""};
    for (const LoggedFigure& figure : figures) {
      const std::optional<double> value = last_of(figure, logs[i]);
      row.push_back(value ? format_number(*value, 4) : "");
    }
    table.add_row(std::move(row));
  }
  page.heading(logs.size() == 1 ? "Training log " + printable(names.front())
                                : fmt::format("{} training logs", logs.size()));
  page.table(table);
  page.paragraph(fmt::format(
      "The step is the median without the first tenth of the steps{}{}; other figures "
      "are the last ones that the log states.",
      any_times_from(logs, calibration::StepTimes::Stamps)
          ? ", where a log states no times by the times at which its lines were written"
          : "",
      any_times_from(logs, calibration::StepTimes::Throughput)
          ? ", where a log tells no times by its throughput and the plan's batch and GPUs"
          : ""));
  for (std::size_t i = 0; i < logs.size(); ++i) {
    warn_of_lost_loss(page, logs[i], names[i]);
    describe_attempts(page, logs[i], names[i]);
    const std::optional<Seconds> step = logs[i].step();
    if (!planned && !step) describe_missing_times(page, logs[i], names[i]);
    if (planned && step)
      page.paragraph(fmt::format("The plan predicts a step of {}; that of {} takes {} ({} %).",
                                 format_time(*planned), names[i], format_time(*step),
                                 format_signed_percent(*step / *planned - 1.0)));
    using Step = const calibration::LoggedStep&;
    add_curve(page, "Loss in " + names[i], "loss", logs[i], [](Step each) { return each.loss; });
    add_curve(page, "Time of the steps in " + names[i], "s", logs[i], [](Step each) {
      return each.time ? std::optional(each.time->value()) : std::nullopt;
    });
  }
}

}  // namespace shardwright::cli
