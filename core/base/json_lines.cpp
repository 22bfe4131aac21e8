#include "core/base/json_lines.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/untrusted_file.hpp"

namespace shardwright {
namespace {

// The length of a line in bytes beyond which it is refused.
constexpr std::size_t kLongestLine = 1 << 20;
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
      problems.add_all(line, error);
      if (++bad_lines == kMostBadLines) break;
      if (refuse) refuse(line, error);
    }
  }
  if (refuse && bad_lines < kMostBadLines) return;
  problems.throw_if_any();
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

}  // namespace shardwright
