// A spec document as a table: one row per figure, with its value in readable units, its source and
// its confidence.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cli/output/page.hpp"

namespace shardwright::cli {

// Adds the values of a document (as `to_json` of a cluster, stack or model writes it) to the page.
// A part with its own schema has its own heading. Values that a profile leaves out are marked as
// filled in.
void add_spec(Page& page, const nlohmann::ordered_json& document);

}  // namespace shardwright::cli
