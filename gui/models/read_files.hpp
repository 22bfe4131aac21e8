// Reads the files that were named together, reports the progress to the window, and searches for
// plans if the comparison of two files needs them.
#pragma once

#include <QString>
#include <QStringList>
#include <QtGlobal>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "core/base/large_json_file.hpp"
#include "core/timeline/timeline.hpp"
#include "gui/models/opened_file.hpp"
#include "gui/models/plan_set.hpp"
#include "gui/models/scenario_choice.hpp"

namespace shardwright::gui {

class ReadingProgress {
 public:
  struct State {
    // "Reading step.json"; empty if nothing has begun.
    QString doing;
    // The bytes that were read and parsed.
    qint64 bytes = 0;
    qint64 total = 0;
  };

  // Counts the bytes of all files and of what is read in folders of runs.
  void begin(const QStringList& paths);
  void doing(const QString& what);
  // Counts a file as read that was not read to its end.
  void skip_to(qint64 bytes);
  ReadingWatch watch(const std::stop_token& stop);

  State state() const;

 private:
  mutable std::mutex mutex_;
  State state_;
};

// Returns the bytes of a file, or of the files that are read in the folder of a run.
qint64 bytes_to_read(const QString& path);

struct ReadFile {
  OpenedFile file;
  // The plans of a plan file, of a search result or of a run; for two clusters or two models the
  // best plans of the scenario on each.
  PlanSetPointer plans;
  std::optional<ScenarioChoice> choice;
  std::shared_ptr<const Timeline> measured;
  // True for clusters and models beyond the one that the field of a scenario can hold.
  bool is_one_of_many = false;
};

struct FileProblem {
  QString path;
  QString text;
};

struct ReadFiles {
  // The files that could be read, in their order.
  std::vector<ReadFile> files;
  std::vector<FileProblem> problems;
};

// Reads the files; a damaged file does not affect the others. `choice` is the scenario for which
// two clusters or two models are compared, each by a narrow search (narrow_limits). The result is
// incomplete if `stop` was requested.
ReadFiles read_files(const QStringList& paths, const ScenarioChoice& choice,
                     ReadingProgress& progress, const std::stop_token& stop);

}  // namespace shardwright::gui
