#include "gui/models/run_folder.hpp"

#include <QDir>
#include <QFileInfo>
#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>

#include "calibration/calibrate.hpp"
#include "core/base/error.hpp"
#include "core/timeline/timeline_file.hpp"
#include "gui/models/opened_file.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

constexpr const char* kCalibrated = " (calibrated)";

using StepFiles = std::map<std::int64_t, std::map<std::int64_t, QString>>;  // by step and rank

// "timeline-STEP-RANK.json".
StepFiles timelines_in(const QDir& folder) {
  StepFiles steps;
  for (const QString& name : folder.entryList({QStringLiteral("timeline-*.json")}, QDir::Files)) {
    if (const auto file = parse_timeline_name(name.toStdString()))
      steps[file->step][file->rank] = folder.filePath(name);
  }
  return steps;
}

// The files by rank. A run that is going or was killed has the last step of some ranks only.
std::vector<QString> last_timelines(const QDir& folder) {
  const StepFiles steps = timelines_in(folder);
  const auto fullest = std::max_element(
      steps.rbegin(), steps.rend(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  std::vector<QString> files;
  if (fullest == steps.rend()) return files;
  for (const auto& [rank, file] : fullest->second) files.push_back(file);
  return files;
}

void append(Timeline& all, const Timeline& rank) {
  const auto first = static_cast<std::uint32_t>(all.spans.size());
  all.origin = rank.origin;
  all.step = rank.step;
  all.ranks.insert(all.ranks.end(), rank.ranks.begin(), rank.ranks.end());
  all.spans.insert(all.spans.end(), rank.spans.begin(), rank.spans.end());
  all.memory.insert(all.memory.end(), rank.memory.begin(), rank.memory.end());
  for (const Flow& flow : rank.flows) all.flows.push_back({flow.from + first, flow.to + first});
}

}  // namespace

std::optional<RunFolder> find_run(const QString& folder) {
  const QDir files(folder);
  RunFolder run{folder, files.filePath(QStringLiteral("metrics.jsonl")), last_timelines(files), {}};
  if (!QFileInfo::exists(run.metrics)) return std::nullopt;
  const QString plan = files.filePath(QStringLiteral("plan.json"));
  if (QFileInfo::exists(plan)) run.plan = plan;
  return run;
}

std::shared_ptr<const Timeline> read_measured_step(const RunFolder& run,
                                                   const ReadingWatch& watch) {
  if (run.timelines.empty()) return nullptr;
  auto all = std::make_shared<Timeline>();
  for (const QString& path : run.timelines) {
    const std::string file = path.toStdString();
    append(*all, read_timeline(read_large_json_file(file, kMostFileBytes, watch), file));
  }
  return all;
}

QString free_profile_name(const QString& folder) {
  const QDir files(folder);
  for (int number = 1;; ++number) {
    const QString suffix = number == 1 ? QString() : QStringLiteral("-%1").arg(number);
    QString path = files.filePath(QStringLiteral("calibrated%1.json").arg(suffix));
    if (!QFileInfo::exists(path)) return path;
  }
}

QString calibration_obstacle(const QString& folder) {
  const auto run = find_run(folder);
  if (!run) return QStringLiteral("The folder has no metrics.jsonl.");
  if (run->plan.isEmpty()) return QStringLiteral("The run's folder has no plan.json.");
  std::size_t ranks = 0;
  try {
    ranks = static_cast<std::size_t>(load_scenario(run->plan.toStdString()).plan.world_size());
  } catch (const InputError& error) {
    return error_text(error);
  }
  const StepFiles steps = timelines_in(QDir(folder));
  const bool has_whole_step = std::any_of(steps.begin(), steps.end(), [ranks](const auto& step) {
    return step.second.size() == ranks;
  });
  if (has_whole_step) return {};
  return QStringLiteral("No step of the run was recorded by all of its ranks: it ended too early.");
}

RunCalibration calibrate_run(const QString& folder) {
  calibration::CalibrationData data;
  data.runs.push_back(calibration::load_run(folder.toStdString()));
  Scenario scenario = data.runs.front().scenario;
  ProblemList problems("calibration");
  calibration::check_device(data.runs.front(), scenario.cluster, problems);
  problems.throw_if_any();
  const std::string source = "shardwright gui, run " + data.runs.front().name;
  calibration::Calibration found = calibration::calibrate(scenario.cluster, data, source);
  if (!found.cluster.name.ends_with(kCalibrated)) found.cluster.name += kCalibrated;
  return {std::move(scenario), std::move(found.cluster), found.figures.size(), found.steps.front()};
}

}  // namespace shardwright::gui
