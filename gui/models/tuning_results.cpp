#include "gui/models/tuning_results.hpp"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/json_reader.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

constexpr std::int64_t kMostTrials = 1'000'000;

struct Texts {
  Q_DECLARE_TR_FUNCTIONS(TuningResults)
};

QString value_text(double value) {
  return QString::number(value, 'g', 4);
}

planner::StudyRules read_rules(ObjectReader study, ProblemList& problems) {
  planner::StudyRules rules;
  for (const std::string& text : study.texts("vary"))
    rules.parameters.push_back(planner::read_tuned_parameter("/study/vary", text, problems));
  rules.search = study.choice<planner::TuningSearch>("search");
  rules.rungs = study.numbers("rungs");
  if (rules.rungs.empty()) study.problem_with("rungs", "at least one share of the budget");
  return rules;
}

// A loss that is absent is that of a trial that diverged.
void take_result(ObjectReader result, TuningResults& tuning) {
  const auto trial = static_cast<std::size_t>(result.integer("trial", {0, kMostTrials}));
  const auto rung = static_cast<std::size_t>(result.integer("rung", {0, kMostTrials}));
  const std::vector<double> values = result.numbers("values", kNonNegative);
  const std::int64_t steps = result.integer("steps");
  const double loss =
      result.number_or("loss", std::numeric_limits<double>::infinity(), kNonNegative);
  if (values.size() != tuning.study.rules.parameters.size())
    return result.problem_with("values", "a value for each of /study/vary");
  std::vector<planner::Trial>& trials = tuning.study.trials;
  if (trials.size() <= trial) {
    trials.resize(trial + 1);
    tuning.steps.resize(trial + 1);
  }
  if (rung != trials[trial].losses.size())
    return result.problem_with("rung", "the one after those of the trial before it");
  trials[trial].values = values;
  trials[trial].losses.push_back(loss);
  tuning.steps[trial].push_back(steps);
}

QString reached_text(const TuningResults& tuning, const planner::Trial& trial) {
  if (trial.losses.empty()) return Texts::tr("running");
  if (trial.diverged()) return Texts::tr("diverged");
  const std::size_t rung = std::min(trial.losses.size(), tuning.study.rules.rungs.size()) - 1;
  return percent_text(tuning.study.rules.rungs[rung]);
}

}  // namespace

QString TuningResults::folder_of(std::size_t trial) const {
  return QDir(folder).filePath(u"trial-%1"_s.arg(trial, 4, 10, QChar(u'0')));
}

QString TuningResults::name_of(std::size_t trial) const {
  QStringList values;
  for (std::size_t i = 0; i < study.trials[trial].values.size(); ++i)
    values.append(u"%1 %2"_s.arg(to_qstring(planner::name_of(study.rules.parameters[i].name)),
                                 value_text(study.trials[trial].values[i])));
  return Texts::tr("trial %1: %2").arg(trial).arg(values.join(u", "_s));
}

TuningResults read_tuning_results(const QString& folder) {
  const std::string file = QDir(folder).filePath(kTuningFile.toString()).toStdString();
  ProblemList problems(file);
  const nlohmann::json read = read_json_file(file);
  ObjectReader document(read, "", problems);
  if (document.text("schema") != kTuningSchema) document.problem_with("schema", kTuningSchema);
  TuningResults tuning;
  tuning.folder = folder;
  tuning.study.rules = read_rules(document.object("study"), problems);
  for (const ObjectReader& result : document.objects("results")) take_result(result, tuning);
  problems.throw_if_any();
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
