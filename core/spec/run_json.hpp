// Run profiles as JSON (schema "shardwright/run", version 1).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/spec/run_spec.hpp"

namespace shardwright {

class FieldVisitor;

// Throws InputError with all problems; `source` names the document in them.
RunSpec read_run(const nlohmann::json& document, const std::string& source);

nlohmann::ordered_json to_json(const RunSpec& spec);

// The fields of a stage.
void describe(RunStage& stage, FieldVisitor& fields);

// Adds the problems of stages that do not go together.
void check_stages(const std::vector<RunStage>& stages, ProblemList& problems);

}  // namespace shardwright
