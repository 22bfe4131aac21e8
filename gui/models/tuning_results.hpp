// The trials of a tuning, as `shardwright tune` keeps them in its folder.
#pragma once

#include <QString>
#include <cstdint>
#include <vector>

#include "gui/models/table_text.hpp"
#include "planner/tuning/study.hpp"

namespace shardwright::gui {

struct TuningResults {
  QString folder;
  planner::Study study;
  // The steps at which each trial's losses were taken, by trial.
  std::vector<std::vector<std::int64_t>> steps;
  // The numbers of the trials from the best to the worst.
  std::vector<std::size_t> ranking;

  QString folder_of(std::size_t trial) const;
  // "trial 3: lr 0.002, global-batch 8".
  QString name_of(std::size_t trial) const;
};

// Reads the folder's tuning.json. Throws InputError with every problem.
TuningResults read_tuning_results(const QString& folder);

// A row a trial, in the order of the ranking.
TextTable table_of(const TuningResults& tuning);

}  // namespace shardwright::gui
