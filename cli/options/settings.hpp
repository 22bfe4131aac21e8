// Values that --set gives: fields of the plan ("tp=8", "overlap.p2p=false") and members of the
// documents of model, cluster and stack ("cluster.node.nic.per_node=4").
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/spec/scenario.hpp"
#include "core/spec/spec_document.hpp"

namespace shardwright::cli {

// A value as JSON writes it: a number, true or false, a list; everything else is a text.
nlohmann::json parsed_value(const std::string& text);

// The settings of the plan as a merge patch. A setting that is none is a problem.
nlohmann::json plan_settings(const std::vector<std::string>& settings, ProblemList& problems);

// The settings of model, cluster or stack as a merge patch, without the name of the part; an empty
// object where there are none.
nlohmann::json spec_settings(SpecKind kind, const std::vector<std::string>& settings);

// The problems of settings that are not of model, cluster or stack.
void refuse_plan_settings(const std::vector<std::string>& settings, ProblemList& problems);

// Apply the settings to parts that were read. Problems name "--set cluster" and the pointer in the
// part's document.
void apply_settings(const std::vector<std::string>& settings, ModelSpec& model,
                    ProblemList& problems);
void apply_settings(const std::vector<std::string>& settings, ClusterSpec& cluster,
                    ProblemList& problems);
void apply_settings(const std::vector<std::string>& settings, StackSpec& stack,
                    ProblemList& problems);

}  // namespace shardwright::cli
