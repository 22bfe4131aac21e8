// Files that the window opens, recognised by their content.
#pragma once

#include <QString>
#include <cstdint>
#include <memory>
#include <variant>

#include "core/base/large_json_file.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/scenario.hpp"
#include "core/timeline/timeline.hpp"
#include "gui/models/plan_set.hpp"
#include "gui/models/run_folder.hpp"

namespace shardwright::gui {

struct OpenedFile {
  QString path;
  std::variant<Scenario, PlanSetPointer, ClusterSpec, ModelSpec, std::shared_ptr<const Timeline>,
               RunFolder>
      content;
};

// Bytes of the largest file that is read: a timeline of a million spans has some 300 MB, a result
// of 100,000 plans as many.
inline constexpr std::uintmax_t kMostFileBytes = 1ULL << 30;

// "plan", "search result", "cluster", "model", "timeline", "run folder".
QString kind_of(const OpenedFile& file);

// A plan file, what `plan --json` writes, a cluster, a model (Hugging Face's config.json as well),
// a timeline (of a run, or of simulate --timeline) or a run folder. Throws InputError with every
// problem, for unknown documents too; ReadingStopped where `watch` asks for it.
OpenedFile open_file(const QString& path, const ReadingWatch& watch = {});

}  // namespace shardwright::gui
