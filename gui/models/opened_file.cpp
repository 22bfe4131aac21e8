#include "gui/models/opened_file.hpp"

#include <QDir>
#include <QFileInfo>
#include <array>
#include <nlohmann/json.hpp>

#include "core/spec/model_json.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "core/timeline/perfetto.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

using nlohmann::json;

constexpr const char* kExpected =
    "a plan, a result of plan or scale --json, a cluster, a model, a timeline, a trace or a folder "
    "of "
    "a run";

OpenedFile open_folder(const QString& path) {
  const QDir folder(path);
  if (const auto run = find_run(path)) return {path, *run};
  if (QFileInfo::exists(folder.filePath(u"config.json"_s)))
    return {path, load_model(path.toStdString())};
  throw InputError(path.toStdString(), {{"", "a folder without metrics.jsonl", kExpected}});
}

OpenedFile open_document(const QString& path, const ReadingWatch& watch) {
  const std::string file = path.toStdString();
  const QFileInfo info(path);
  // Reading of a pipe would wait for its other end.
  if (info.exists() && !info.isFile())
    throw InputError(file, {{"", "a pipe or a device", "a file"}});
  const json document = read_large_json_file(file, kMostFileBytes, watch);
  const std::string schema =
      document.is_object() && document.contains("schema") && document["schema"].is_string()
          ? document["schema"].get<std::string>()
          : "";
  if (schema == kPlanSchema) return {path, read_scenario(document, file)};
  if (schema == "shardwright/plans" || schema == "shardwright/scale")
    return {path, std::make_shared<const PlanSet>(read_plan_set(document, file))};
  if (schema == "shardwright/cluster") return {path, load_cluster(file)};
  if (schema == kTimelineSchema)
    return {path, std::make_shared<const Timeline>(read_timeline(document, file))};
  if (schema == kModelSchema || (document.is_object() && document.contains("model_type")))
    return {path, load_model(file)};
  if (document.is_object() && document.contains("traceEvents"))
    return {path, std::make_shared<const Timeline>(read_perfetto(document, file))};
  const std::string found = schema.empty() ? "no schema" : "\"" + schema + "\"";
  throw InputError(file, {{"/schema", found, kExpected}});
}

}  // namespace

QString kind_of(const OpenedFile& file) {
  constexpr std::array<const char*, 6> kKinds = {"plan",  "search result", "cluster",
                                                 "model", "timeline",      "run folder"};
  return to_qstring(kKinds[file.content.index()]);
}

OpenedFile open_file(const QString& path, const ReadingWatch& watch) {
  const QFileInfo info(path);
  if (!info.exists()) throw InputError(path.toStdString(), {{"", "no such file", kExpected}});
  return info.isDir() ? open_folder(path) : open_document(path, watch);
}

}  // namespace shardwright::gui
