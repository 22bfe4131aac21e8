// Shows the content of files that were opened, each kind in its view; two of a kind are compared.
#pragma once

#include <QObject>
#include <QStringList>
#include <vector>

#include "gui/models/background_job.hpp"
#include "gui/models/read_files.hpp"
#include "gui/models/scenario_document.hpp"
#include "gui/models/selection.hpp"
#include "gui/window/opened_files.hpp"

class QSettings;

namespace shardwright::gui {

class MessageBar;

struct ReadBatch {
  QStringList paths;
  // True if the files were open already: the views in front stay there.
  bool is_reload = false;
};

class FileReader : public QObject {
  Q_OBJECT

 public:
  FileReader(const ScenarioDocument* document, MessageBar* messages, QObject* parent);

  // Joins files that are opened while others are read; files that are read again wait by
  // themselves.
  void read(const ReadBatch& batch);
  // Drops the files that are being read and those that wait.
  void stop();
  bool is_busy() const { return job_.is_running(); }
  const ReadingProgress& progress() const { return progress_; }
  QStringList unread() const;

 Q_SIGNALS:
  void busy_changed(bool busy);
  void read_all(const ReadFiles& files, const ReadBatch& batch);

 private:
  void read_next();

  const ScenarioDocument* document_;
  MessageBar* messages_;
  ReadBatch reading_;
  std::vector<ReadBatch> waiting_;
  ReadingProgress progress_;
  BackgroundJob<ReadFiles> job_;
};

class Docks;
class ForecastView;
class OpenedFiles;
class RunView;
class ScenarioPlanner;
class ScenarioView;
class StepPresenter;
class WhyView;

class FilePresenter : public QObject {
  Q_OBJECT

 public:
  struct Parts {
    ScenarioDocument* document;
    Selection* selection;
    ScenarioPlanner* planner;
    OpenedFiles* opened;
    MessageBar* messages;
    StepPresenter* step;
    Docks* docks;
    ScenarioView* scenario;
    WhyView* why;
    ForecastView* forecast;
    RunView* run;
  };

  FilePresenter(const Parts& parts, QObject* parent);

  void open(const QStringList& paths) { reader_.read({paths, false}); }
  // Opens the files of the last session that still exist.
  void open_last_session(const QSettings& settings);
  // Reads all files that are open again, and leaves the views where they are.
  void reload();
  FileReader& reader() { return reader_; }
  const RecentFiles& recent() const { return recent_; }

  // `run`: the folder of a run that goes on without the window, or empty.
  void save(QSettings& settings, const QString& run) const;
  void restore(const QSettings& settings);

 Q_SIGNALS:
  void recent_changed();

 private:
  using Files = std::vector<const ReadFile*>;

  void take_files(const ReadFiles& read, const ReadBatch& batch);
  // A problem with a file is shown until the file can be read or the user closes the message.
  void show_problems(const ReadFiles& read);
  // Remembers the files of a kind that are shown. Files that were shown before and are damaged now
  // stay among them: they are read again when they are mended.
  void note_opened(OpenedKind kind, const Files& files);
  // Show files of one kind, or two files side by side, and return the files that they leave out.
  QStringList take_plans(const Files& plans);
  QStringList take_timelines(const Files& timelines);
  QStringList take_traces(const Files& traces);
  QStringList take_runs(const Files& runs);
  QStringList take_scenarios(const Files& scenarios);
  QStringList take_parts(const Files& parts);
  void take_part(const ReadFile& read);
  // Offers all of them to the forecast, which takes the last.
  void take_profiles(const Files& profiles);
  // Shows the first tuning.
  QStringList take_tunings(const Files& tunings);
  void take_run(const ReadFile& run);
  QStringList show_plans(const Files& plans);
  // Shows the recorded steps of one run or two instead of the chosen plan's. When the runs are read
  // again, only if they are shown.
  void show_recorded(const Files& runs, const QStringList& names);
  // Lets the fields name what the plans of a file are for, or says that they do not.
  void adopt_scenario(const ReadFile& read);
  void bring_forward(const QString& id);
  // Reads the file again, and the file that it is compared with.
  void reload_with_others(const QString& path);
  void offer_reload(const QString& path, bool exists);

  Parts parts_;
  RecentFiles recent_;
  ReadBatch batch_;
  FileReader reader_;
};

}  // namespace shardwright::gui
