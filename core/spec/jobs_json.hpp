// Jobs documents as JSON (schema "shardwright/jobs", version 1).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/spec/jobs_spec.hpp"

namespace shardwright {

// True if the document states this schema.
bool is_jobs_document(const nlohmann::json& document);

// Throws InputError with all problems; `source` names the document in them.
JobsSpec read_jobs(const nlohmann::json& document, const std::string& source);

}  // namespace shardwright
