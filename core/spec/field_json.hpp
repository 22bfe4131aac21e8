// Reads, writes and documents JSON by the table of a spec's fields (core/spec/fields.hpp).
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/json_reader.hpp"
#include "core/spec/fields.hpp"
#include "core/spec/provenance.hpp"

namespace shardwright {

// Passes the fields of one spec to a visitor.
using FieldWalk = std::function<void(FieldVisitor&)>;

// Receives the defaults that a reader filled in.
struct FillInReport {
  // The place of the document in its file; the pointers of `sources` are relative to it.
  std::string root;
  Sources* sources;
  // A line for people for each default.
  std::vector<std::string>* lines;
};

// Reads the fields from an object and refuses all other keys.
void read_fields(ObjectReader& object, const FieldWalk& walk, FillInReport* report = nullptr);

// Reads a document at `pointer` of its file whose figures may have sources. `lines` receives a line
// for each figure that was filled in.
void read_figures(const nlohmann::json& document, const std::string& pointer, ProblemList& problems,
                  Sources& sources, std::vector<std::string>& lines, const FieldWalk& walk);

// Writes the fields of `walk`. Those of `defaults` are the fields of a default-constructed spec.
nlohmann::ordered_json write_fields(const FieldWalk& walk, const FieldWalk& defaults,
                                    const Sources& sources = {});

template <class Spec>
nlohmann::ordered_json write_spec(const Spec& spec, const Sources& sources = {}) {
  // `describe` serves readers too, so it takes a spec that it may change.
  Spec copy = spec, defaults;
  return write_fields([&](FieldVisitor& fields) { describe(copy, fields); },
                      [&](FieldVisitor& fields) { describe(defaults, fields); }, sources);
}

// Returns the JSON Schema (draft 2020-12) of documents with these fields. Beside the standard
// keywords it has "unit", "default_reason" and "required_where", which validators ignore.
nlohmann::ordered_json json_schema(const FieldWalk& walk);

}  // namespace shardwright
