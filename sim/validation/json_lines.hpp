// Files of one JSON object per line.
#pragma once

#include <fstream>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/base/json_reader.hpp"
#include "core/base/units.hpp"

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

// Whether the first row of a stream is typed: it has a "scenario", "kernels",
// "measured_s" or "unsupported". The stream is at its beginning afterwards.
bool is_typed(std::istream& stream);

// Calls `read` with each line's object; every line has an id of its own. Throws InputError with the
// problems of all lines, by line and JSON pointer: "line 3/scenario/plan/tp".
void read_typed_lines(std::istream& stream, const std::string& source,
                      const std::function<void(ObjectReader&)>& read);

// What became of a line that holds a row.
struct RowLine {
  std::string place;     // "line 3"
  std::string problems;  // "line 3/m: found …, expected …; …"; empty: it could be read
};

// Calls `read` once for each line of a stream that is not empty: with its object, or, where it is
// no JSON, with one without members. Its problems are those of the line alone. Throws InputError,
// which says what was `expected`, if no line can be read, a hundred are no JSON or one is too long.
std::vector<RowLine> read_row_lines(std::istream& stream, const std::string& source,
                                    const std::string& expected,
                                    const std::function<void(ObjectReader&)>& read);

// Gives a row without an id that of its line, and says so, as of an id that a row before has, too.
void name_row(std::string& id, const std::string& place, std::set<std::string>& ids,
              std::vector<std::string>& filled_in);

// A kind of rows. Each has an `id` and a list of what was `filled_in`.
template <class Row>
struct RowKind {
  Row (*read)(ObjectReader&);
  std::string Row::*reason;  // why the row cannot be used, which takes its problems
  const char* expected;      // what its files hold, in errors
};

// The rows of a stream, one a line. A row with problems stays, with them as its reason, so that the
// others can be used. Throws InputError as `read_row_lines` does.
template <class Row>
std::vector<Row> read_rows(std::istream& stream, const std::string& source,
                           const RowKind<Row>& kind) {
  std::vector<Row> rows;
  const std::vector<RowLine> lines =
      read_row_lines(stream, source, kind.expected,
                     [&](ObjectReader& object) { rows.push_back(kind.read(object)); });
  std::set<std::string> ids;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].problems.empty()) rows[i].*(kind.reason) = lines[i].problems;
    name_row(rows[i].id, lines[i].place, ids, rows[i].filled_in);
  }
  return rows;
}

// A row's "source": a text, or an object with a title. Empty where there is none.
std::string source_of(ObjectReader& row);

// A row's `time_us`, `time_ms` or `time_s`; zero where there is none.
Seconds time_of(ObjectReader& row);

}  // namespace shardwright::sim
