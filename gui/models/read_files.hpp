// Reads all that was named at once, and what a comparison of it needs.
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
  // Of plans, search results, and of a run with its plan. Of two clusters or two models: the best
  // plans of the scenario on each.
  PlanSetPointer plans;
  std::optional<ScenarioChoice> choice;      // that those best plans are of
  std::shared_ptr<const Timeline> measured;  // of a run
  // A cluster or a model of which there are more: no field of a scenario holds two.
  bool is_one_of_many = false;
};

// What is wrong with a file, in words that name it.
struct FileProblem {
  QString path;
  QString text;
};

struct ReadFiles {
  std::vector<ReadFile> files;        // those that could be read, in their order
  std::vector<FileProblem> problems;  // of the others
};

// Files that are damaged leave the others alone. `choice` is the scenario that two clusters or two
// models are compared for; both are searched as a narrow search does (narrow_limits). `progress` is
// told how far it goes. What is read once that `stop` asks for it is not all.
ReadFiles read_files(const QStringList& paths, const ScenarioChoice& choice,
                     ReadingProgress& progress, const std::stop_token& stop);

}  // namespace shardwright::gui
