// The whole run of the chosen plan: days, dollars, failures, and what would help.
#pragma once

#include <optional>

#include "gui/models/background_job.hpp"
#include "gui/models/run_forecast.hpp"
#include "gui/models/selection.hpp"
#include "gui/views/profile_box.hpp"
#include "gui/views/view.hpp"

class QLabel;
class QLineEdit;
class QToolButton;

namespace shardwright::gui {

class BarChart;
class EmptyState;
class ShareBar;
class TrajectoryChart;

class ForecastView : public View {
  Q_OBJECT

 public:
  explicit ForecastView(Selection* selection, QWidget* parent = nullptr);

  TextTable table() const override;
  std::vector<ReportPart> report() const override;
  bool is_busy() const override { return job_.is_running(); }

  // Adds the profile of a file, or reads it anew, and chooses it if `choose`.
  void offer(const QString& path, const RunSpec& run, bool choose);
  void offer(const QString& path, const BatchSpec& laws, bool choose);
  // The files whose profiles are among the choices.
  QStringList files() const { return runs_.box->files() + laws_.box->files(); }

  void look_again() override;

  void save(QSettings& settings) const;
  // Returns what is wrong with the files of profiles that were chosen, which defaults replace.
  QStringList restore(const QSettings& settings);

 Q_SIGNALS:
  // The user has named the file of a profile.
  void file_wanted(const QString& path);

 private:
  QWidget* create_controls();
  QWidget* create_goal();
  void create_profiles();
  QWidget* create_figures();
  QWidget* create_charts();
  // Begins again if the question has changed.
  void follow();
  void begin();
  void stop();
  void end();
  void take(std::shared_ptr<const RunForecast> run);
  void show_hint(const QString& hint);
  void show_figures();
  void show_bars();
  bool wants_loss() const;
  // None for a text that is no number of tokens, or no loss.
  std::optional<std::variant<double, LossGoal>> goal() const;
  // None without a plan or a goal.
  std::optional<RunQuestion> question() const;
  QString hint_without_question() const;

  struct Tile {
    QWidget* widget;
    QLabel *title, *value, *detail;
  };

  Selection* selection_;
  QComboBox* goal_ = nullptr;
  QLineEdit *tokens_ = nullptr, *loss_ = nullptr;
  QWidget *tokens_row_ = nullptr, *loss_row_ = nullptr;
  Profiles<RunSpec> runs_;
  Profiles<BatchSpec> laws_;
  ShareBar* progress_ = nullptr;
  QToolButton* stop_ = nullptr;
  std::vector<Tile> tiles_;
  QLabel *warning_ = nullptr, *tokens_text_ = nullptr, *laws_text_ = nullptr;
  TrajectoryChart* trajectory_ = nullptr;
  BarChart *lost_ = nullptr, *gains_ = nullptr;
  EmptyState* empty_ = nullptr;
  // The question that is answered or worked on.
  std::optional<RunQuestion> asked_;
  std::shared_ptr<const RunForecast> run_;
  BackgroundJob<RunForecast> job_;
};

}  // namespace shardwright::gui
