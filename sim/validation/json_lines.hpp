// Files of one JSON object per line.
#pragma once

#include <fstream>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "core/base/json_reader.hpp"

namespace shardwright::sim {

// A file to read lines from. Throws InputError if it cannot be read.
std::ifstream open_json_lines(const std::string& file);

// Calls `read` with each line's value and its place, "line N"; empty lines are skipped. The stream
// is read line by line, so that it may be large; a line may not (1 MiB). `source` names it in
// errors. Throws InputError with all lines that are no JSON or at which `read` threw one; after a
// hundred of those, or at a line that is too long, the rest is not read. With `refuse`, a bad line
// is told to it with its problems and costs the others nothing, unless there are a hundred of them.
void for_each_json(
    std::istream& stream, const std::string& source,
    const std::function<void(const nlohmann::json&, const std::string&)>& read,
    const std::function<void(const std::string&, const InputError&)>& refuse = nullptr);

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
