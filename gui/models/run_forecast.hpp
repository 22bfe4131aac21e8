// The forecast of a whole run as the window shows it: its figures, the uses of its time, what would
// help, and its course over time.
#pragma once

#include <QString>
#include <QStringList>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "core/spec/batch_spec.hpp"
#include "gui/models/table_text.hpp"
#include "planner/forecast.hpp"

namespace shardwright::gui {

// A loss to train to, in nats per token, and the laws that say how many tokens it takes.
struct LossGoal {
  double loss = 0.0;
  BatchSpec laws;

  bool operator==(const LossGoal&) const = default;
};

// What a forecast is made of.
struct RunQuestion {
  Scenario scenario;
  RunSpec run;
  // A number of tokens, or a loss.
  std::variant<double, LossGoal> goal;
  // The file of the run profile, which problems name; empty for a shipped one.
  std::string run_file{};

  bool operator==(const RunQuestion&) const = default;
};

struct RunForecast {
  planner::ForecastRequest request;
  planner::Forecast forecast;
  sim::RunTrajectory trajectory;
  // Behind the number of tokens; none where it was stated.
  std::vector<std::string> laws;
  bool is_outside_of_laws = false;

  // False if failures leave too many of the simulated runs no progress.
  bool ends() const { return !trajectory.times.empty(); }
  // Returns what so much time of the run costs; zero if the cluster has no price.
  Dollars cost_after(Seconds time) const;
};

// Throws InputError, for a loss that the model never reaches, too.
RunForecast forecast_run(const RunQuestion& question, const std::function<void(double)>& progress,
                         const std::stop_token& stop);

// Reads a number of tokens as "15T". Returns nothing for other texts, and beyond 1e15.
std::optional<double> tokens_of(const QString& text);

// "1.2 T tokens".
QString tokens_text(double tokens);

// A figure of the run with what qualifies it.
struct RunFigure {
  QString title, value, detail, tip;
};
std::vector<RunFigure> run_figures(const RunForecast& run);

// Says how many of the runs do not end, and what the profile asks for and the plan cannot have.
QStringList warnings(const RunForecast& run);

// The tokens that the loss takes, and whether their laws hold there; empty where they were stated.
QString tokens_of_loss_text(const RunForecast& run);
// The laws themselves, a line each.
QString laws_text(const RunForecast& run);

// A use of the time of the run besides its steps, or what a tenth less of one thing would save.
struct RunShare {
  QString title, tip;
  // Of the wall time.
  double share = 0.0;
  // None for what would help.
  std::optional<sim::RunPart> part;
};
// "0.72 %": most shares of a run are below one percent.
QString run_share_text(double share);
// Largest first.
std::vector<RunShare> lost_times(const RunForecast& run);
std::vector<RunShare> worthwhile_gains(const RunForecast& run);

// What happened to the run at an interruption: its cause, when, what it lost.
QString interruption_text(const RunForecast& run, const sim::RunInterruption& interruption);
// How far the runs are at a time.
QString progress_text(const RunForecast& run, Seconds time);
// The uses of a part of the time of the median run, the largest first.
QString uses_text(const sim::RunTimes& times, Seconds begin, Seconds end);

TextTable table_of(const RunForecast& run);

}  // namespace shardwright::gui
