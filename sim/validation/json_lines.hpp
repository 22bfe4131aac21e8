// Files of one JSON object per line.
#pragma once

#include <functional>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "core/base/json_reader.hpp"

namespace shardwright::sim {

// Calls `read` with each line's value and its place, "line N"; empty lines are skipped. A file is
// read line by line, so that it may be large; a line may not (1 MiB). Throws InputError if the file
// cannot be read, or with all lines that are no JSON or at which `read` threw one; after a hundred
// of those, or at a line that is too long, the rest is not read.
void for_each_json(const std::string& file,
                   const std::function<void(const nlohmann::json&, const std::string&)>& read);

// The same of a stream's lines; `source` names it in errors.
void for_each_json(std::istream& stream, const std::string& source,
                   const std::function<void(const nlohmann::json&, const std::string&)>& read);

// The same with each line's object, to which `read` may add problems.
void for_each_json_line(const std::string& file, const std::function<void(ObjectReader&)>& read);

// The same of a stream's lines; `source` names it in errors.
void for_each_json_line(std::istream& stream, const std::string& source,
                        const std::function<void(ObjectReader&)>& read);

// The ids of a file's rows, of which each may stand once.
class RowIds {
 public:
  // Adds a problem at the row's "id" if a row before has it.
  void add(ObjectReader& row, const std::string& id);

 private:
  std::set<std::string> ids_;
};

// A row's "source": a text, or an object with a title. Empty where there is none.
std::string source_of(ObjectReader& row);

}  // namespace shardwright::sim
