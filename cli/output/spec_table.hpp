// Any spec document as a table: one row per figure, with its value in readable units, its source
// and how far that can be trusted.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cli/output/page.hpp"

namespace shardwright::cli {

// Adds the facts of a document (as the `to_json` of a cluster, stack or model writes it) to the
// page, a part with a schema of its own under a heading of its own. What a profile left out is
// marked as filled in.
void add_spec(Page& page, const nlohmann::ordered_json& document);

}  // namespace shardwright::cli
