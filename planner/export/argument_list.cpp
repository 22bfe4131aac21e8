#include "planner/export/argument_list.hpp"

#include <fmt/format.h>

namespace shardwright::planner {
namespace {

std::string quoted(std::string_view value) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,-+";
  if (value.find_first_not_of(kPlain) == std::string_view::npos) return std::string(value);
  return fmt::format("'{}'", value);
}

}  // namespace

void ArgumentList::add(std::string_view flag, std::string_view value) {
  lines_.push_back(fmt::format("{} {}", flag, quoted(value)));
}

void ArgumentList::add_words(std::string_view flag, std::string_view words) {
  lines_.push_back(fmt::format("{} {}", flag, words));
}

void ArgumentList::assign(std::string_view flag, std::string_view value) {
  lines_.push_back(fmt::format("{}={}", flag, quoted(value)));
}

std::string ArgumentList::text(std::string_view name,
                               const std::vector<std::string>& comments) const {
  std::string text;
  for (const std::string& comment : comments) text += fmt::format("# {}\n", comment);
  text += fmt::format("{}=(\n", name);
  for (const std::string& line : lines_) text += fmt::format("  {}\n", line);
  return text + ")\n";
}

}  // namespace shardwright::planner
