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
// is read line by line and may be large; a line has at most 1 MiB. `source` names it in errors.
// Throws InputError with all lines that are no JSON or at which `read` threw InputError; it stops
// reading after a hundred of them, or at a line that is too long. With `refuse`, a bad line goes
// there with its problems and the others are read, unless there are a hundred bad ones.
void for_each_json(
    std::istream& stream, const std::string& source,
    const std::function<void(const nlohmann::json&, const std::string&)>& read,
    const std::function<void(const std::string&, const InputError&)>& refuse = nullptr);

// Calls `read` with each line's object; every line has an id of its own. Throws InputError with the
// problems of all lines, by line and JSON pointer: "line 3/scenario/plan/tp".
void read_typed_lines(std::istream& stream, const std::string& source,
                      const std::function<void(ObjectReader&)>& read);

}  // namespace shardwright
