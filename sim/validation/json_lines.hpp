// Files of one JSON object per line.
#pragma once

#include <functional>
#include <string>

#include "core/base/json_reader.hpp"

namespace shardwright::sim {

// Calls `read` with each line's object; its pointer begins with "line N". Throws InputError with
// all problems of the file if it cannot be read, a line is no JSON object, an "id" is missing or
// stands twice, or `read` added problems.
void for_each_json_line(const std::string& file, const std::function<void(ObjectReader&)>& read);

// A row's "source": a text, or an object with a title. Empty where there is none.
std::string source_of(ObjectReader& row);

}  // namespace shardwright::sim
