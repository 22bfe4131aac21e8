// Reads the files that were named together, and searches for plans if their comparison needs it.
#pragma once

#include <QString>
#include <QStringList>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "core/timeline/timeline.hpp"
#include "gui/models/opened_file.hpp"
#include "gui/models/plan_set.hpp"
#include "gui/models/reading_progress.hpp"
#include "gui/models/scenario_choice.hpp"

namespace shardwright::gui {

// A file, ready to be shown.
struct ReadFile {
  OpenedFile file;
  // The plans of a plan file, of a search result or of a run; for two clusters or two models the best
  // plans of the scenario on each.
  PlanSetPointer plans;
  // The scenario that these best plans are for.
  std::optional<ScenarioChoice> choice;
  // The recorded step of a run.
  std::shared_ptr<const Timeline> measured;
  // A cluster or a model of which there are more: no field of a scenario holds two.
  bool is_one_of_many = false;
};

// The problem of a file, in words that name the file.
struct FileProblem {
  QString path;
  QString text;
};

struct ReadFiles {
  // The files that could be read, in their order.
  std::vector<ReadFile> files;
  // The problems of the other files.
  std::vector<FileProblem> problems;
};

// Files that are damaged leave the others alone. `choice` is the scenario that two clusters or two
// models are compared for; both are searched as a narrow search does (narrow_limits). `progress` is
// told how far it goes. What is read once that `stop` asks for it is not all.
ReadFiles read_files(const QStringList& paths, const ScenarioChoice& choice,
                     ReadingProgress& progress, const std::stop_token& stop);

}  // namespace shardwright::gui
