#include "gui/models/tuning_results.hpp"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <cmath>
#include <utility>

#include "gui/models/text.hpp"
#include "planner/tuning/study_file.hpp"

namespace shardwright::gui {
namespace {

struct Texts {
  Q_DECLARE_TR_FUNCTIONS(TuningResults)
};

QString value_text(double value) {
  return QString::number(value, 'g', 4);
}

QString reached_text(const TuningResults& tuning, const planner::Trial& trial) {
  if (trial.losses.empty()) return Texts::tr("running");
  if (trial.diverged()) return Texts::tr("diverged");
  const std::size_t rung = std::min(trial.losses.size(), tuning.study.rules.rungs.size()) - 1;
  return percent_text(tuning.study.rules.rungs[rung]);
}

}  // namespace

QString TuningResults::folder_of(std::size_t trial) const {
  return QDir(folder).filePath(to_qstring(planner::trial_folder(trial)));
}

QString TuningResults::name_of(std::size_t trial) const {
  QStringList values;
  for (std::size_t i = 0; i < study.trials[trial].values.size(); ++i)
    values.append(u"%1 %2"_s.arg(to_qstring(planner::name_of(study.rules.parameters[i].name)),
                                 value_text(study.trials[trial].values[i])));
  return Texts::tr("trial %1: %2").arg(trial).arg(values.join(u", "_s));
}

TuningResults read_tuning_results(const QString& folder) {
  planner::StudyRecord record = planner::read_study_file(
      QDir(folder).filePath(to_qstring(planner::kStudyFile)).toStdString());
  TuningResults tuning;
  tuning.folder = folder;
  tuning.study.rules = std::move(record.rules);
  for (planner::StudyResult& result : record.results) {
    if (tuning.study.trials.size() <= result.trial) {
      tuning.study.trials.resize(result.trial + 1);
      tuning.steps.resize(result.trial + 1);
    }
    planner::Trial& trial = tuning.study.trials[result.trial];
    trial.values = std::move(result.values);
    trial.losses.push_back(result.loss);
    tuning.steps[result.trial].push_back(result.steps);
  }
  tuning.ranking = planner::ranking(tuning.study);
  return tuning;
}

TextTable table_of(const TuningResults& tuning) {
  TextTable table;
  table.header = {Texts::tr("Trial")};
  for (const planner::TunedParameter& parameter : tuning.study.rules.parameters)
    table.header.append(to_qstring(planner::name_of(parameter.name)));
  table.header += {Texts::tr("Steps"), Texts::tr("Loss"), Texts::tr("Budget")};
  for (const std::size_t i : tuning.ranking) {
    const planner::Trial& trial = tuning.study.trials[i];
    QStringList row = {QString::number(i)};
    for (std::size_t p = 0; p < tuning.study.rules.parameters.size(); ++p)
      row.append(p < trial.values.size() ? value_text(trial.values[p]) : QString());
    const bool has = !trial.losses.empty();
    row += {has ? count_text(tuning.steps[i].back()) : QString(),
            has && std::isfinite(trial.losses.back()) ? fixed_text(trial.losses.back(), 4) : u"–"_s,
            reached_text(tuning, trial)};
    table.rows.push_back(row);
  }
  return table;
}

}  // namespace shardwright::gui
