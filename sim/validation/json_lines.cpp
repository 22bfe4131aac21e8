#include "sim/validation/json_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/bounded_line.hpp"

namespace shardwright::sim {
namespace {

constexpr std::size_t kLongestLine = 1 << 20;  // bytes
constexpr std::size_t kMostBadLines = 100;

// The next line; false at the end. Throws at a line that is too long.
bool next_line(std::istream& stream, std::string& text, const std::string& file,
               std::size_t number) {
  const LineRead read = read_bounded_line(stream, kLongestLine, text);
  if (read == LineRead::TooLong) {
    throw InputError(
        file, {{fmt::format("line {}", number), fmt::format("more than {} bytes", kLongestLine),
                "a JSON object of one row"}});
  }
  return read == LineRead::Whole;
}

using Reader = std::function<void(const nlohmann::json&, const std::string&)>;

std::string reasons_of(const InputError& error) {
  std::string text;
  for (const Problem& each : error.problems())
    text += fmt::format("{}{}{}found {}, expected {}", text.empty() ? "" : "; ", each.where,
                        each.where.empty() ? "" : ": ", each.found, each.expected);
  return text;
}

// Reads one line; what is wrong with it, empty if nothing is.
std::string problems_of_line(const nlohmann::json& line, const std::string& place,
                             const std::string& source,
                             const std::function<void(ObjectReader&)>& read) {
  ProblemList problems(source);
  ObjectReader object(line, place, problems);
  read(object);
  try {
    problems.throw_if_any();
  } catch (const InputError& error) {
    return reasons_of(error);
  }
  return "";
}

}  // namespace

std::ifstream open_json_lines(const std::string& file) {
  if (std::filesystem::is_directory(file))
    throw InputError(file, {{"", "a folder", "a file of JSON lines"}});
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw InputError(file, {{"", "no such readable file", "a file of JSON lines"}});
  return stream;
}

void for_each_json(std::istream& stream, const std::string& source, const Reader& read,
                   const std::function<void(const std::string&, const InputError&)>& refuse) {
  ProblemList problems(source);
  std::string text;
  std::size_t bad_lines = 0;
  for (std::size_t number = 1; next_line(stream, text, source, number); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string line = fmt::format("line {}", number);
    try {
      read(parse_json(text, source), line);
    } catch (const InputError& error) {
      for (const Problem& problem : error.problems())
        problems.add(line + problem.where, problem.found, problem.expected);
      if (++bad_lines == kMostBadLines) break;
      if (refuse) refuse(line, error);
    }
  }
  if (refuse && bad_lines < kMostBadLines) return;
  problems.throw_if_any();
}

bool is_typed(std::istream& stream) {
  std::string text;
  while (text.find_first_not_of(" \t\r") == std::string::npos && std::getline(stream, text)) {
  }
  stream.clear();
  stream.seekg(0);
  const nlohmann::json row = nlohmann::json::parse(text, nullptr, false);
  return row.is_object() && (row.contains("scenario") || row.contains("unsupported") ||
                             row.contains("kernels") || row.contains("measured_s"));
}

void read_typed_lines(std::istream& stream, const std::string& source,
                      const std::function<void(ObjectReader&)>& read) {
  std::set<std::string> ids;
  for_each_json(stream, source, [&](const nlohmann::json& line, const std::string&) {
    ProblemList problems(source);
    ObjectReader object(line, "", problems);
    read(object);
    if (const auto id = line.find("id"); line.is_object() && id != line.end() && id->is_string() &&
                                         !ids.insert(id->get<std::string>()).second)
      object.problem("id", shown(*id) + " again", "an id that no line before has");
    problems.throw_if_any();
  });
}

std::vector<RowLine> read_row_lines(std::istream& stream, const std::string& source,
                                    const std::string& expected,
                                    const std::function<void(ObjectReader&)>& read) {
  const nlohmann::json no_members = nlohmann::json::object();
  std::vector<RowLine> lines;
  for_each_json(
      stream, source,
      [&](const nlohmann::json& document, const std::string& place) {
        lines.push_back({place, problems_of_line(document, place, source, read)});
      },
      [&](const std::string& place, const InputError& error) {
        problems_of_line(no_members, place, source, read);
        lines.push_back({place, reasons_of(error)});
      });
  const auto is_readable = [](const RowLine& line) { return line.problems.empty(); };
  if (!lines.empty() && std::none_of(lines.begin(), lines.end(), is_readable)) {
    throw InputError(source,
                     {{"", "no row that can be read; " + lines.front().problems, expected}});
  }
  return lines;
}

void name_row(std::string& id, const std::string& place, std::set<std::string>& ids,
              std::vector<std::string>& filled_in) {
  if (id.empty()) {
    id = place;
    filled_in.push_back(fmt::format("id: {}", place));
  }
  if (!ids.insert(id).second) filled_in.emplace_back("id: another row of the file has it too");
}

std::string source_of(ObjectReader& row) {
  if (row.raw("source").is_object()) return row.object("source").text_or("title", "");
  return row.text_or("source", "");
}

Seconds time_of(ObjectReader& row) {
  if (row.has("time_us")) return microseconds(row.number("time_us"));
  if (row.has("time_ms")) return milliseconds(row.number("time_ms"));
  return Seconds(row.number_or("time_s", 0.0));
}

}  // namespace shardwright::sim
