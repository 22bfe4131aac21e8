// The scenario that the user asks for, as the names and numbers of the fields.
#pragma once

#include <QString>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/enum_names.hpp"
#include "core/base/error.hpp"
#include "core/spec/plan.hpp"
#include "planner/explain.hpp"

namespace shardwright::gui {

// Percent of each resource.
using WhatIfs = EnumArray<planner::Resource, int>;

// The fields of a scenario. Problems name them by `id_of`.
enum class Field : std::uint8_t {
  Model,
  Cluster,
  Accelerator,
  Node,
  Fabric,
  Stack,
  Gpus,
  GlobalBatch,
  SeqLen,
  Precision,
  Objective,
  MaxMemory,
  Constraints,
  WhatIf,
};

// "model", "cluster", …: also the object names of the widgets.
QString id_of(Field field);
QString title_of(Field field);
QString what_if_title(planner::Resource resource);
// Unit, range and meaning; scenario_tips.hpp adds what stands behind a choice.
QString tip_of(Field field);

// The limits of a field, both ends included.
struct Range {
  std::int64_t least, most;
};
inline constexpr Range kGpusRange = {1, 10'000'000};
inline constexpr Range kGlobalBatchRange = {0, 1'000'000'000};
inline constexpr Range kSeqLenRange = {1, 1'000'000'000};
// The range is in GB.
inline constexpr Range kMemoryRange = {0, 1'000'000};
// The range is in percent.
inline constexpr Range kWhatIfRange = {10, 1000};

// The worked example that the window opens on is the default: Llama 3 70B on 512 H100.
struct ScenarioChoice {
  // A shipped name, or the path of a file or folder.
  std::string model = "llama3-70b";
  // A shipped name, or the path of a file.
  std::string cluster = "dgx-h100";
  // Parts that replace those of the cluster; empty names keep them.
  std::string accelerator, node, fabric;
  std::string stack = "megatron-core";
  std::int64_t gpus = 512;
  // Sequences; 0 leaves the choice to the search.
  std::int64_t global_batch = 1024;
  std::int64_t seq_len = 8192;
  std::string precision = "bf16";
  // The adapters of a plan file that was opened. The form has no field for them.
  std::optional<Lora> lora;
  std::string objective = "time";
  // The limit for an accelerator; 0 is all of its memory.
  double max_memory_gb = 0.0;
  // "tp=8, pp>=4, not zero=3": a query (gui/models/query.hpp).
  std::string constraints;
  // 100 is the profile's own.
  WhatIfs what_if{{100, 100, 100, 100, 100, 100, 100, 100, 100, 100}};

  bool operator==(const ScenarioChoice&) const = default;
};

// The value of a field other than the what-ifs, or the words for one that is left open. Numbers are
// not grouped, for other programs.
QString value_text(Field field, const ScenarioChoice& choice);

// Returns the field of this id, which is a problem's `where`, or `fallback` for problems of the
// whole scenario.
Field field_of(const std::string& where, Field fallback);

// Write and read a session. Reading uses defaults for missing members and ignores unknown ones,
// because a session of another version must not stop the program. A value that no field can show
// becomes a problem in `replaced` with the id of its field.
nlohmann::ordered_json to_json(const ScenarioChoice& choice);
ScenarioChoice read_choice(const nlohmann::json& document, std::vector<Problem>& replaced);

// The document of a file that holds a scenario (docs/formats/scenario.md). Adapters are left out.
inline constexpr const char* kScenarioSchema = "shardwright/scenario";
nlohmann::ordered_json scenario_file(const ScenarioChoice& choice);
// Throws InputError with every unknown member and every value that no field can show; `file` names
// the document.
ScenarioChoice read_scenario_file(const nlohmann::json& document, const std::string& file);

}  // namespace shardwright::gui
