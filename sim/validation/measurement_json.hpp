// Writing measurements; reading them is part of measurement.hpp.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/base/json_reader.hpp"
#include "sim/validation/measurement.hpp"

namespace shardwright::sim {

// One line of a file, with the scenario's parts as smallest patches on shipped documents.
nlohmann::ordered_json to_json(const Measurement& measurement);

// The source that a measurement of any kind names.
PublishedSource read_published_source(ObjectReader object);
nlohmann::ordered_json to_json(const PublishedSource& source);

// A model, cluster or stack in the shortest form: the name of the shipped one that it equals, or a
// patch on the one that it is nearest to.
nlohmann::ordered_json shortest_form(const ModelSpec& model);
nlohmann::ordered_json shortest_form(ClusterSpec cluster);
nlohmann::ordered_json shortest_form(StackSpec stack);

}  // namespace shardwright::sim
