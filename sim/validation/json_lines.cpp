#include "sim/validation/json_lines.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace shardwright::sim {
namespace {

// Problems of text that is no JSON at all, at their line.
void add_problems(ProblemList& problems, const std::string& line, const InputError& error) {
  for (const Problem& problem : error.problems())
    problems.add(line + problem.where, problem.found, problem.expected);
}

}  // namespace

void for_each_json_line(const std::string& file, const std::function<void(ObjectReader&)>& read) {
  std::ifstream stream(file);
  if (!stream) throw InputError(file, {{"", "no such readable file", "a file of JSON lines"}});
  ProblemList problems(file);
  std::string text;
  for (std::size_t number = 1; std::getline(stream, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string line = fmt::format("line {}", number);
    try {
      const nlohmann::json document = parse_json(text, file);
      ObjectReader object(document, line, problems);
      read(object);
    } catch (const InputError& error) {
      add_problems(problems, line, error);
    }
  }
  problems.throw_if_any();
}

void RowIds::add(ObjectReader& row, const std::string& id) {
  if (!ids_.insert(id).second) row.problem("id", fmt::format("\"{}\" again", id), "each id once");
}

std::string source_of(ObjectReader& row) {
  if (row.raw("source").is_object()) return row.object("source").text_or("title", "");
  return row.text_or("source", "");
}

}  // namespace shardwright::sim
