// Files of one JSON object per line.
#pragma once

#include <fstream>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/base/json_reader.hpp"
#include "core/base/units.hpp"

namespace shardwright {

// A file to read lines from. Throws InputError if it cannot be read.
std::ifstream open_json_lines(const std::string& file);

// Calls `read` with each line's value and its place, "line N"; empty lines are skipped. The stream
// is read line by line, so that it may be large; a line may not (1 MiB). `source` names it in
// errors. Throws InputError with all lines that are no JSON or at which `read` threw one; after a
// hundred of those, or at a line that is too long, the rest is not read. With `refuse`, a bad line
// is passed to it with its problems and costs the others nothing, unless there are a hundred of them.
void for_each_json(
    std::istream& stream, const std::string& source,
    const std::function<void(const nlohmann::json&, const std::string&)>& read,
    const std::function<void(const std::string&, const InputError&)>& refuse = nullptr);

// Calls `read` with each line's object; every line has an id of its own. Throws InputError with the
// problems of all lines, by line and JSON pointer: "line 3/scenario/plan/tp".
void read_typed_lines(std::istream& stream, const std::string& source,
                      const std::function<void(ObjectReader&)>& read);

}  // namespace shardwright
