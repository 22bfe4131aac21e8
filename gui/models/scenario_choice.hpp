// What the user asks to be planned, as it stands in the fields: names and numbers, not yet loaded.
#pragma once

#include <QString>
#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/spec/cluster_spec.hpp"
#include "planner/explain.hpp"
#include "planner/search.hpp"

namespace shardwright::gui {

// The first of planner::Resource: the window plans no optimizers on the host.
inline constexpr int kResources = 8;

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
inline constexpr int kFields = 14;

// "model", "cluster", …: also the object names of the widgets.
QString id_of(Field field);
QString title_of(Field field);
// "HBM bandwidth".
QString what_if_title(planner::Resource resource);
// Unit, range and meaning; scenario_tips.hpp adds what stands behind a choice.
QString tip_of(Field field);

// What the counts of a scenario may be, both ends included.
struct Range {
  std::int64_t least, most;
};
inline constexpr Range kGpusRange = {1, 10'000'000};
inline constexpr Range kGlobalBatchRange = {0, 1'000'000'000};
inline constexpr Range kSeqLenRange = {1, 1'000'000'000};
// GB.
inline constexpr Range kMemoryRange = {0, 1'000'000};
// Percent.
inline constexpr Range kWhatIfRange = {10, 1000};

// The worked example that the window opens on is the default: Llama 3 70B on 512 H100.
struct ScenarioChoice {
  // A shipped name, or the path of a file or folder.
  std::string model = "llama3-70b";
  // A shipped name, or the path of a file.
  std::string cluster = "dgx-h100";
  // These replace the parts of the cluster; empty keeps them.
  std::string accelerator, node, fabric;
  std::string stack = "megatron-core";
  std::int64_t gpus = 512;
  // Sequences; 0 leaves the choice to the search.
  std::int64_t global_batch = 1024;
  // Tokens.
  std::int64_t seq_len = 8192;
  std::string precision = "bf16";
  std::string objective = "time";
  // Of an accelerator; 0 is all that it has.
  double max_memory_gb = 0.0;
  // "tp=8; not zero=3": separated by semicolons, "not" forbids.
  std::string constraints;
  // Percent of each planner::Resource: 100 is the profile's own.
  std::array<int, kResources> what_if = {100, 100, 100, 100, 100, 100, 100, 100};

  bool operator==(const ScenarioChoice&) const = default;
};

// Name of the stack that the file of a cluster holds; empty where it holds none or cannot be read.
std::string own_stack_of(const std::string& cluster);

// `choice` on another cluster, with the stack that `shardwright plan` takes there: the cluster's
// own where it has one. That of the former cluster does not go with it.
ScenarioChoice on_cluster(ScenarioChoice choice, const std::string& cluster);

// The stack of this name: the cluster's own, or a shipped one, or that of a file. Throws
// InputError.
StackSpec load_stack_on(const ClusterSpec& cluster, const std::string& name);

// What a plan's scenario asks for, on the cluster of this name or file. A model that is not
// shipped, or a stack that neither is nor belongs to the cluster, stays with its name alone.
ScenarioChoice choice_of(const Scenario& scenario, const std::string& cluster);

// The same where the shipped files say all of the scenario; none where they do not.
std::optional<ScenarioChoice> shipped_choice_of(const Scenario& scenario);

// Loads the parts. A stack that the cluster's profile holds itself is taken from there. Throws
// InputError with every problem; `where` is the id of the field.
planner::PlanRequest load_request(const ScenarioChoice& choice);

// The cluster alone, with replaced parts and what-ifs. Throws InputError.
ClusterSpec load_cluster_of(const ScenarioChoice& choice);

// The field of this id, which a problem's `where` is.
// Those that name none belong to the scenario as a whole: Field::Model … by `fallback`.
Field field_of(const std::string& where, Field fallback);

// Names of the shipped profiles in a folder ("nodes", "fabrics"), sorted.
std::vector<std::string> shipped_profiles(const std::string& folder);

// For sessions. Reading takes defaults for what is missing and ignores what it does not know: a
// session of another version must not stop the program. What no field can show is replaced by its
// default and told in `replaced`, with the id of its field.
nlohmann::ordered_json to_json(const ScenarioChoice& choice);
ScenarioChoice read_choice(const nlohmann::json& document, std::vector<Problem>& replaced);

}  // namespace shardwright::gui
