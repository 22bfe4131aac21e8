// Figures of profiles: numbers that say where they come from.
//
// In a profile a figure is written `{"value": 3.35e12, "source": "h100-datasheet", "confidence":
// "datasheet"}`, where the source is a key of the document's "sources" map `{"h100-datasheet":
// {"title": …, "url": …}}`. A value may also be an array of numbers. Users may write a bare number;
// it is recorded as assumed, "given without source". A figure that was fitted may also say its 95 %
// interval ("low", "high") and the error that is left ("residual_ratio").
//
// Reading takes a document apart into plain values, which the spec readers then check, and the
// provenance of each by JSON pointer; writing puts both together again.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/base/json_reader.hpp"
#include "core/spec/cluster_spec.hpp"

namespace shardwright {

// The sources of a bare number and of a value that the reader filled in.
inline constexpr const char* kGivenWithoutSource = "given without source";
inline constexpr const char* kFilledIn = "filled in by Shardwright";

// Returns the document with each figure replaced by its value. `sources` receives the provenance by
// pointer relative to the document; problems are reported below `pointer`, the place of the
// document in its file. A nested object with a "schema" is a document of its own and left as it is.
nlohmann::json separate_figures(const nlohmann::json& document, const std::string& pointer,
                                ProblemList& problems, Sources& sources);

// Does the reverse: puts provenance around the values that `sources` names and appends the
// "sources" map. Skips pointers that the document does not have.
void attach_sources(nlohmann::ordered_json& document, const Sources& sources);

// Adds a problem unless the document says that it is of this schema and of version 1.
void check_schema(ObjectReader& document, const std::string& schema);

}  // namespace shardwright
