// The whole run of the chosen plan: days, dollars, failures, and what would help.
#pragma once

#include <optional>

#include "gui/models/background_job.hpp"
#include "gui/models/run_forecast.hpp"
#include "gui/models/selection.hpp"
#include "gui/views/view.hpp"

class QComboBox;
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
  bool is_busy() const { return job_.is_running(); }

  void save(QSettings& settings) const;
  void restore(const QSettings& settings);

 protected:
  // Starts a forecast if one is due: nothing is simulated while the view is hidden.
  void showEvent(QShowEvent* event) override;

 private:
  QWidget* create_controls();
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
  // None without a plan, and with a text that is no number of tokens.
  std::optional<RunQuestion> question() const;
  QString hint_without_question() const;

  struct Tile {
    QWidget* widget;
    QLabel *title, *value, *detail;
  };

  Selection* selection_;
  QLineEdit* tokens_ = nullptr;
  QComboBox* profile_ = nullptr;
  ShareBar* progress_ = nullptr;
  QToolButton* stop_ = nullptr;
  std::vector<Tile> tiles_;
  QLabel* warning_ = nullptr;
  TrajectoryChart* trajectory_ = nullptr;
  BarChart *lost_ = nullptr, *gains_ = nullptr;
  EmptyState* empty_ = nullptr;
  // The question that is answered or worked on.
  std::optional<RunQuestion> asked_;
  std::shared_ptr<const RunForecast> run_;
  BackgroundJob<RunForecast> job_;
};

}  // namespace shardwright::gui
