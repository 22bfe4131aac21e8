#include "gui/models/run_folder.hpp"

#include <QDir>
#include <QFileInfo>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/timeline/timeline_file.hpp"
#include "gui/models/opened_file.hpp"
#include "sim/calibration/run_device.hpp"

namespace shardwright::gui {
namespace {

constexpr const char* kCalibrated = " (calibrated)";

// "timeline-STEP-RANK.json" of the last step, by rank.
std::vector<QString> last_timelines(const QDir& folder) {
  std::map<std::int64_t, std::map<std::int64_t, QString>> steps;
  for (const QString& name : folder.entryList({QStringLiteral("timeline-*.json")}, QDir::Files)) {
    if (const auto file = parse_timeline_name(name.toStdString()))
      steps[file->step][file->rank] = folder.filePath(name);
  }
  std::vector<QString> files;
  if (steps.empty()) return files;
  for (const auto& [rank, file] : steps.rbegin()->second) files.push_back(file);
  return files;
}

void append(Timeline& all, const Timeline& rank) {
  const auto first = static_cast<std::uint32_t>(all.spans.size());
  all.origin = rank.origin;
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

RunCalibration calibrate_run(const QString& folder) {
  sim::CalibrationData data;
  data.runs.push_back(sim::load_run(folder.toStdString()));
  Scenario scenario = data.runs.front().scenario;
  ProblemList problems("calibration");
  sim::check_device(data.runs.front(), scenario.cluster, problems);
  problems.throw_if_any();
  const std::string source = "shardwright gui, run " + data.runs.front().name;
  sim::Calibration found = sim::calibrate(scenario.cluster, data, source);
  if (!found.cluster.name.ends_with(kCalibrated)) found.cluster.name += kCalibrated;
  return {std::move(scenario), std::move(found.cluster), found.figures.size(), found.steps.front()};
}

}  // namespace shardwright::gui
