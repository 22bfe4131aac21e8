#include "core/base/error.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "core/base/printable_text.hpp"
#include "core/base/standard_streams.hpp"

namespace shardwright {
namespace {

std::string describe(const std::string& source, const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    if (!text.empty()) text += '\n';
    text += printable(fmt::format("{}: {}", source, to_string(problem)));
  }
  return text;
}

}  // namespace

std::string to_string(const Expected& expected) {
  if (expected.nearest.empty()) return expected.text;
  return fmt::format("{} (did you mean \"{}\"?)", expected.text, expected.nearest);
}

std::string to_string(const Problem& problem) {
  return fmt::format("{}{}found {}; expected {}", problem.where, problem.where.empty() ? "" : ": ",
                     problem.found, to_string(problem.expected));
}

InputError::InputError(std::string source, std::vector<Problem> problems)
    : std::runtime_error(describe(source, problems)),
      source_(std::move(source)),
      problems_(std::move(problems)) {}

void ProblemList::add(std::string where, std::string found, Expected expected) {
  Problem problem{std::move(where), std::move(found), std::move(expected)};
  problem.where = in_file(problem.where);
  problems_.push_back(std::move(problem));
}

void ProblemList::add_all(const std::string& prefix, const InputError& error) {
  for (const Problem& problem : error.problems())
    add(prefix + problem.where, problem.found, problem.expected);
}

void ProblemList::add_level(const std::string& pointer, const std::string& key) {
  levels_[pointer] = key;
}

// No level lies below another: a value that has taken the place of its object is a plain one.
std::string ProblemList::in_file(const std::string& where) const {
  for (std::size_t end = where.size(); end != std::string::npos && end > 0;
       end = where.rfind('/', end - 1)) {
    const auto level = levels_.find(where.substr(0, end));
    if (level != levels_.end()) return level->first + "/" + level->second + where.substr(end);
  }
  return where;
}

void ProblemList::throw_if_any() const {
  if (!problems_.empty()) throw InputError(source_, problems_);
}

void fail_invariant(const char* condition, const char* file, int line, const std::string& message) {
  print_message(fmt::format("{}:{}: broken invariant `{}`: {}", file, line, condition, message));
  std::abort();
}

}  // namespace shardwright
