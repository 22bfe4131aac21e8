// Readers of --set: fields of the plan ("tp=8", "overlap.p2p=false") and members of the
// documents of model, cluster and stack ("cluster.node.nic.per_node=4").
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/spec/scenario.hpp"
#include "core/spec/spec_document.hpp"

namespace shardwright::cli {

// The parts of a plan file beside its plan.
inline constexpr std::array kPlanFileParts = {SpecKind::Model, SpecKind::Cluster, SpecKind::Stack};

// The field of the option --lora.
inline constexpr const char* kLoraField = "lora";
inline constexpr const char* kLoraHelp =
    "Train low-rank adapters over frozen weights: rank=16, and behind commas alpha=32, targets=q+v "
    "(of q, k, v, o, gate, up, down; default all), base=nf4 or joint=true";

// Parses a value as JSON (a number, true or false, a list), or as a number with a suffix ("8k",
// "80%", "64GiB", "400GB/s"), which becomes one in the base unit. Everything else is a text.
nlohmann::json parsed_value(const std::string& text);

// {"rank": 16, "targets": ["q", "v"]} for "rank=16,targets=q+v": the option --lora.
nlohmann::json lora_value(const std::string& text);

// Returns the settings of the plan as a merge patch. Adds a problem for each malformed setting.
nlohmann::json plan_settings(const std::vector<std::string>& settings, ProblemList& problems);

// Returns the settings of model, cluster or stack as a merge patch without the name of the part; an
// empty object if there are none.
nlohmann::json spec_settings(SpecKind kind, const std::vector<std::string>& settings);

// Adds a problem for each setting that is not one of model, cluster or stack.
void refuse_plan_settings(const std::vector<std::string>& settings, ProblemList& problems);

// Apply the settings to parts that were read. Problems name "--set cluster" and the pointer in the
// part's document.
void apply_settings(const std::vector<std::string>& settings, ModelSpec& model,
                    ProblemList& problems);
void apply_settings(const std::vector<std::string>& settings, ClusterSpec& cluster,
                    ProblemList& problems);
void apply_settings(const std::vector<std::string>& settings, StackSpec& stack,
                    ProblemList& problems);
void apply_settings(const std::vector<std::string>& settings, RunSpec& run, ProblemList& problems);

// Takes the settings of the run profile ("run.startup_s=60") out of `settings` and returns them.
std::vector<std::string> take_run_settings(std::vector<std::string>& settings);

}  // namespace shardwright::cli
