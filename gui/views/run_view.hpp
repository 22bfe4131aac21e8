// A training run: started with the chosen plan, followed live beside its prediction.
#pragma once

#include <optional>

#include "gui/models/background_job.hpp"
#include "gui/models/opened_file.hpp"
#include "gui/models/run_follower.hpp"
#include "gui/models/run_process.hpp"
#include "gui/models/selection.hpp"
#include "gui/views/view.hpp"

class QLabel;
class QLineEdit;
class QPushButton;
class QSettings;
class QToolButton;

namespace shardwright::gui {

class EmptyState;
class PowerSpinBox;
class ProfileRow;
class RunCharts;
class TrialsPane;

class RunView : public View {
  Q_OBJECT

 public:
  explicit RunView(Selection* selection, QWidget* parent = nullptr);

  // Follows a run that something else started, which can be stopped here while it trains, or that
  // has ended. Without its plan there is no prediction beside it.
  void follow(const RunFolder& folder, std::optional<planner::PlanCandidate> predicted);
  // Shows the trials of a tuning, and the run of the one that is chosen in them.
  void show_tuning(TuningResults tuning);
  // Draws another run beside the one that is followed, until that one changes.
  void compare_with(const RunFolder& other);
  void start();
  void stop();
  // Lets the run go on without the window, which may then close.
  void release_run();
  // The folder of the run that was let go; empty if none was.
  const QString& released_run() const { return released_run_; }
  // Refits the profile of the run's cluster to what the run measured, or says why it cannot.
  void calibrate();
  // The reason why no run can start, or an empty text.
  const QString& starting_is_off() const { return starting_is_off_; }
  // The reason why no calibration was possible when the controls last changed, or an empty text.
  const QString& calibration_is_off() const { return calibration_is_off_; }
  // Names a text to train on and a free folder, where the fields are empty.
  void fill_in_sample();
  bool is_running() const { return process_.is_running(); }
  // True while a run is in progress that ends with the window unless it is released.
  bool is_own_running() const { return process_.is_own(); }
  qint64 process_id() const { return process_.id(); }
  bool is_busy() const override { return calibration_.is_running(); }
  const RunFollower& follower() const { return follower_; }
  TextTable table() const override;
  std::vector<ReportPart> report() const override;

  void save(QSettings& settings) const;
  void restore(const QSettings& settings);

 Q_SIGNALS:
  void started();
  // Starting, stopping or calibrating has become possible or impossible.
  void controls_changed();
  // The user wants a model that this machine trains in seconds.
  void try_wanted();
  void ended(bool well);
  // The run has ended well; its folder may hold timelines.
  void measured(const QString& folder);
  // The user wants plans for the scenario of a run on the profile of a file.
  void replan_wanted(const Scenario& scenario, const QString& profile);

 private:
  QWidget* create_controls();
  QLineEdit* add_path(QWidget& pane, const QString& id, const QString& hint);
  void follow_trial(std::size_t trial);
  // `wanted_steps` are those of a run that is in progress, 0 of others.
  void begin_following(const QString& folder, int wanted_steps = 0);
  void take_calibration(const RunCalibration& calibration);
  void take_end(bool well, const QString& message);
  // False while the view shows another run than the one that is in progress, or has ended last.
  bool shows_its_run() const { return process_.folder() == followed_; }
  // Returns false, after `problem`, if the folder is taken; then another one is named in its place.
  bool folder_is_free();
  void update_controls();
  // Reads no file, because it follows each key that is typed.
  void update_start();
  // Says why no run here can train under the chosen plan: it has more ranks than a run may have, or
  // the executor lacks what it needs. Empty if there is no such reason.
  QString obstacle_of_plan() const;
  // Returns the reason why no run can start, or an empty text.
  QString obstacle_to_starting() const;
  // What the view says while it shows no run.
  QString hint() const;
  // Returns the reason why no calibration is possible, or an empty text.
  QString obstacle_to_calibrating() const;
  void update_calibrate();
  void update_charts();
  void update_state();

  Selection* selection_;
  RunProcess process_;
  RunFollower follower_;
  RunFollower other_;
  QString followed_, released_run_;
  // The folder of a run whose end this view has seen.
  QString ended_here_;
  // The folder of the run that ended last while it was shown, and how it ended.
  std::pair<QString, QString> ended_;
  QString name_, other_name_;
  std::optional<planner::PlanCandidate> predicted_;
  QLineEdit *data_ = nullptr, *out_ = nullptr;
  PowerSpinBox* steps_ = nullptr;
  // The steps of the run that is in progress, or was when it was followed first; 0 of others.
  int wanted_steps_ = 0;
  QToolButton *browse_data_ = nullptr, *browse_out_ = nullptr;
  QPushButton *start_ = nullptr, *stop_ = nullptr, *calibrate_ = nullptr;
  QLabel *state_ = nullptr, *warning_ = nullptr;
  ProfileRow* profile_ = nullptr;
  RunCharts* charts_ = nullptr;
  TrialsPane* trials_ = nullptr;
  EmptyState* empty_ = nullptr;
  QString last_message_, starting_is_off_, calibration_is_off_;
  std::optional<RunCalibration> calibrated_;
  BackgroundJob<RunCalibration> calibration_;
};

}  // namespace shardwright::gui
