#include "gui/models/opened_file.hpp"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>

#include "calibration/calibrate.hpp"
#include "core/base/error.hpp"
#include "core/spec/model_json.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/profile_library.hpp"
#include "core/timeline/perfetto.hpp"
#include "core/timeline/timeline_file.hpp"
#include "core/timeline/usual_form.hpp"
#include "gui/models/text.hpp"
#include "planner/tuning/study_file.hpp"

namespace shardwright::gui {
namespace {

using nlohmann::json;

constexpr const char* kExpected =
    "a scenario, a plan, a search result, a cluster, a model, a run or batch profile, a timeline, "
    "a trace, or the folder of a run or of a tuning";

// Tells by the first bytes what is read piece by piece: JSON of profilers, plain or compressed, and
// SQLite. Documents of this project name their schema or their writer there.
bool is_foreign_trace(const QString& path) {
  constexpr qint64 kHead = 4096;
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) return false;
  const QByteArray head = file.read(kHead);
  if (head.startsWith("\x1f\x8b") || head.startsWith("SQLite format 3")) return true;
  if (head.contains("\"shardwright")) return false;
  const auto has = [&](const char* key) { return head.contains(key); };
  // Chrome's other form is an array of events, each of which has a phase.
  const bool is_array = head.trimmed().startsWith('[') && has("\"ph\"");
  return is_array || has("\"traceEvents\"") || has("\"deviceProperties\"") ||
         has("\"distributedInfo\"");
}

bool is_own_trace(const json& document) {
  const auto writer = document.find("otherData");
  return writer != document.end() && writer->is_object() &&
         writer->value("writer", json()) == json(kTraceWriter);
}

OpenedFile open_folder(const QString& path) {
  const QDir folder(path);
  if (const auto run = find_run(path)) return {path, *run};
  if (QFileInfo::exists(folder.filePath(to_qstring(planner::kStudyFile))))
    return {path, read_tuning_results(path)};
  if (QFileInfo::exists(folder.filePath(u"config.json"_s)))
    return {path, load_model(path.toStdString())};
  throw InputError(path.toStdString(),
                   {{"", "a folder without metrics.jsonl and tuning.json", kExpected}});
}

OpenedFile open_document(const QString& path, const ReadingWatch& watch) {
  const std::string file = path.toStdString();
  const QFileInfo info(path);
  // Reading of a pipe would wait for its other end.
  if (info.exists() && !info.isFile())
    throw InputError(file, {{"", "a pipe or a device", "a file"}});
  if (is_foreign_trace(path)) return {path, read_trace(path, watch)};
  if (auto timeline = read_usual_file(file, kMostFileBytes, watch))
    return {path, std::make_shared<const Timeline>(*std::move(timeline))};
  const json document = read_large_json_file(file, kMostFileBytes, watch);
  const std::string schema =
      document.is_object() && document.contains("schema") && document["schema"].is_string()
          ? document["schema"].get<std::string>()
          : "";
  if (schema == kPlanSchema) return {path, read_scenario(document, file)};
  if (schema == "shardwright/plans" || schema == "shardwright/scale")
    return {path, std::make_shared<const PlanSet>(read_plan_set(document, file))};
  if (schema == kScenarioSchema) return {path, read_scenario_file(document, file)};
  if (schema == "shardwright/cluster") return {path, load_cluster(file)};
  if (schema == "shardwright/run") return {path, load_run(file)};
  if (schema == "shardwright/batch") return {path, load_batch(file)};
  if (schema == kTimelineSchema)
    return {path, std::make_shared<const Timeline>(read_timeline(document, file))};
  if (schema == kModelSchema || (document.is_object() && document.contains("model_type")))
    return {path, load_model(file)};
  if (document.is_object() && document.contains("traceEvents") && is_own_trace(document))
    return {path, std::make_shared<const Timeline>(read_perfetto(document, file))};
  if (document.is_object() && document.contains("traceEvents"))
    return {path, read_trace(path, {nullptr, watch.stop})};
  if (info.fileName() == to_qstring(planner::kStudyFile) && schema == planner::kStudySchema)
    return {path, read_tuning_results(info.absolutePath())};
  const bool is_object = document.is_object();
  throw InputError(
      file, {{"",
              !schema.empty() ? "a file of the unknown kind “" + schema + "”"
              : is_object ? "a JSON file that names neither its kind (“schema”) nor, as a model "
                            "of Hugging Face, its family (“model_type”)"
                          : "a JSON file that holds no object",
              kExpected}});
}

constexpr const char* kCalibrated = " (calibrated)";

using StepFiles = std::map<std::int64_t, std::map<std::int64_t, QString>>;

StepFiles timelines_in(const QDir& folder) {
  StepFiles steps;
  for (const QString& name : folder.entryList({u"timeline-*.json"_s}, QDir::Files)) {
    if (const auto file = parse_timeline_name(name.toStdString()))
      steps[file->step][file->rank] = folder.filePath(name);
  }
  return steps;
}

// Returns the files by rank. A run in progress or one that was killed has the last step of some
// ranks only.
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

QString kind_of(const OpenedFile& file) {
  constexpr std::array<const char*, 11> kKinds = {
      "plan",  "search result", "cluster",     "model",         "timeline", "run folder",
      "trace", "tuning",        "run profile", "batch profile", "scenario"};
  return to_qstring(kKinds[file.content.index()]);
}

OpenedFile open_file(const QString& path, const ReadingWatch& watch) {
  const QFileInfo info(path);
  if (!info.exists()) throw InputError(path.toStdString(), {{"", "no such file", kExpected}});
  return info.isDir() ? open_folder(path) : open_document(path, watch);
}

std::optional<RunFolder> find_run(const QString& folder) {
  const QDir files(folder);
  RunFolder run{folder, files.filePath(u"metrics.jsonl"_s), last_timelines(files), {}};
  if (!QFileInfo::exists(run.metrics)) return std::nullopt;
  const QString plan = files.filePath(u"plan.json"_s);
  if (QFileInfo::exists(plan)) run.plan = plan;
  return run;
}

std::shared_ptr<const Timeline> read_measured_step(const RunFolder& run,
                                                   const ReadingWatch& watch) {
  if (run.timelines.empty()) return nullptr;
  auto all = std::make_shared<Timeline>();
  for (const QString& path : run.timelines) {
    const std::string file = path.toStdString();
    const auto usual = read_usual_file(file, kMostFileBytes, watch);
    append(*all,
           usual ? *usual : read_timeline(read_large_json_file(file, kMostFileBytes, watch), file));
  }
  return all;
}

QString free_profile_name(const QString& folder) {
  const QDir files(folder);
  for (int number = 1;; ++number) {
    const QString suffix = number == 1 ? QString() : u"-%1"_s.arg(number);
    QString path = files.filePath(u"calibrated%1.json"_s.arg(suffix));
    if (!QFileInfo::exists(path)) return path;
  }
}

QString calibration_obstacle(const QString& folder) {
  const auto run = find_run(folder);
  if (!run) return u"The folder has no metrics.jsonl."_s;
  if (run->plan.isEmpty()) return u"The run's folder has no plan.json."_s;
  std::size_t ranks = 0;
  try {
    const Plan plan = load_scenario(run->plan.toStdString()).plan;
    if (names_pools(plan))
      return u"The run's ranks lie on several pools: calibrate the profile of each pool on runs "
             u"of its hosts alone."_s;
    ranks = static_cast<std::size_t>(plan.world_size());
  } catch (const InputError& error) {
    return error_text(error);
  }
  const StepFiles steps = timelines_in(QDir(folder));
  const bool has_whole_step = std::any_of(steps.begin(), steps.end(), [ranks](const auto& step) {
    return step.second.size() == ranks;
  });
  if (has_whole_step) return {};
  return u"No step of the run was recorded by all of its ranks: it ended too early."_s;
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
