// JSON by the fields of a spec: documents read and written, and the format itself.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/json_reader.hpp"
#include "core/spec/fields.hpp"
#include "core/spec/provenance.hpp"

namespace shardwright {

// Has a visitor visit the fields of something.
using FieldWalk = std::function<void(FieldVisitor&)>;

// What a reader filled in with defaults: in the sources, and as lines for people.
struct FillInReport {
  // The place of the document in its file, which the pointers of `sources` leave out.
  std::string root;
  Sources* sources;
  std::vector<std::string>* lines;
};

// Reads the fields from an object and refuses all other keys.
void read_fields(ObjectReader& object, const FieldWalk& walk, FillInReport* report = nullptr);

// Reads a document at `pointer` of its file whose figures may have sources. `lines` receives a line
// for each figure that was filled in.
void read_figures(const nlohmann::json& document, const std::string& pointer, ProblemList& problems,
                  Sources& sources, std::vector<std::string>& lines, const FieldWalk& walk);

// Writes the fields of `walk`; those of `defaults` say which of them say nothing.
nlohmann::ordered_json write_fields(const FieldWalk& walk, const FieldWalk& defaults,
                                    const Sources& sources = {});

template <class Spec>
nlohmann::ordered_json write_spec(const Spec& spec, const Sources& sources = {}) {
  // The walk is the reader's, too, and so asks for a spec that it may change.
  Spec copy = spec, defaults;
  return write_fields([&](FieldVisitor& fields) { describe(copy, fields); },
                      [&](FieldVisitor& fields) { describe(defaults, fields); }, sources);
}

// The JSON Schema (draft 2020-12) of the documents that have these fields.
nlohmann::ordered_json json_schema(const FieldWalk& walk);

}  // namespace shardwright
