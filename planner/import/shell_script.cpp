#include "planner/import/shell_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "planner/import/shell_arithmetic.hpp"
#include "planner/import/shell_reader.hpp"

namespace shardwright::planner {

void ShellReader::read(std::vector<ShellCommand>& commands) {
  while (at_ < text_.size()) {
    skip_arithmetic();
    ShellCommand command = read_command();
    if (!command.empty() && !blocks_.skips()) follow(std::move(command), commands);
    if (at_ < text_.size()) ++at_;
  }
}

void ShellReader::read_uncalled(std::vector<ShellCommand>& commands) {
  const bool before = variables_.set_in_function(true);
  const auto functions = functions_.by_name;
  for (const auto& [name, function] : functions)
    if (!function.is_called) read_as_script(function.body, {}, commands, function.line);
  variables_.set_in_function(before);
}

void ShellReader::skip_blanks() {
  for (;;) {
    if (is_shell_blank(peek())) {
      ++at_;
    } else if (peek() == '\\' && peek(1) == '\n') {
      at_ += 2;
    } else if (peek() == '\\' && peek(1) == '\r' && peek(2) == '\n') {
      at_ += 3;
    } else if (peek() == '#') {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      script_.comments.emplace_back(text_.substr(at_ + 1, end - at_ - 1));
      at_ = end;
    } else {
      return;
    }
  }
}

void ShellReader::skip_arithmetic() {
  if (peek() != '(' || peek(1) != '(') return;
  const std::size_t begin = at_, end = text_.find("))", at_);
  if (end == std::string_view::npos) return;
  const std::string_view inner = text_.substr(begin + 2, end - begin - 2);
  std::size_t name = 0;
  while (name < inner.size() && !is_shell_name_start(inner[name])) ++name;
  std::size_t behind = name;
  while (behind < inner.size() && is_shell_name_part(inner[behind])) ++behind;
  at_ = end + 2;
  const std::string_view rest = inner.substr(behind);
  const std::size_t equals = rest.find('=');
  const bool assigns = equals != std::string_view::npos && !rest.substr(equals).starts_with("==") &&
                       rest.find_first_of("<>!=") >= equals;
  const bool counts =
      inner.find("++") != std::string_view::npos || inner.find("--") != std::string_view::npos;
  const bool changes = assigns || counts;
  if (changes && !blocks_.skips())
    variables_.set_unknown(std::string(inner.substr(name, behind - name)),
                           beginning(begin) + ", which is not followed");
  const auto value = arithmetic_value(
      inner, [this](const std::string& variable) { return variables_.text(variable); });
  blocks_.join(ShellJoin::Follows);
  blocks_.end({value == 0 ? "false" : "true"}, value && !changes);
}

ShellCommand ShellReader::read_command() {
  ShellCommand command;
  bool may_assign = true;
  // Between the two marks of "&&" there is nothing.
  if (at_ > 0 && at_ < text_.size() && text_[at_] == text_[at_ - 1] &&
      (peek() == '&' || peek() == '|'))
    return command;
  const bool is_joined = at_ > 1 && text_[at_ - 2] == text_[at_ - 1];
  const ShellJoin join = is_joined && text_[at_ - 1] == '&'   ? ShellJoin::And
                         : is_joined && text_[at_ - 1] == '|' ? ShellJoin::Or
                                                              : ShellJoin::Follows;
  blocks_.join(join);
  unknown_.clear();
  bool assigns = false;
  skip_blanks();
  while (join != ShellJoin::Follows && peek() == '\n') {
    ++at_;
    skip_blanks();
  }
  for (; !ends_command(); skip_blanks()) {
    if (may_assign && take_assignment()) {
      assigns = true;
      continue;
    }
    const bool is_redirection = peek() == '<' || peek() == '>';
    while (peek() == '<' || peek() == '>' || (is_redirection && peek() == '&')) ++at_;
    if (is_redirection) skip_blanks();
    ShellWords word;
    const std::size_t begin = at_;
    read_word(word, true);
    // "2>" is the redirection of a stream.
    const bool is_stream = (peek() == '<' || peek() == '>') && at_ > begin &&
                           text_.find_first_not_of("0123456789", begin) == at_;
    if (is_redirection || is_stream) continue;
    for (std::string& each : word.take()) {
      if (command.empty()) blocks_.begin(each);
      may_assign = command.empty() && may_precede_assignment(each);
      // A list that is unset, in quotes, is no word.
      if (!may_assign && !each.empty()) command.push_back(std::move(each));
    }
  }
  if (!command.empty() || assigns) blocks_.end(command, unknown_.empty());
  return command;
}

void ShellReader::follow(ShellCommand command, std::vector<ShellCommand>& commands) {
  if (take_function(command) || call_function(command, commands)) return;
  const std::string& name = command.front();
  if (name == "unset")
    for (auto each = command.begin() + 1; each != command.end(); ++each) variables_.set(*each, {});
  // Nobody knows how often a loop shifts.
  const bool shifts_one = command.size() == 1 && !blocks_.is_in_doubt();
  if (name == "shift") shifts_one ? variables_.shift() : variables_.forget_parameters();
  if (name == "for") begin_loop(command);
  // Its words are one text, which the shell reads again.
  if (name == "eval" &&
      read_as_script(joined_words({command.begin() + 1, command.end()}), {}, commands))
    return;
  read_inner_script(command, commands);
  commands.push_back(std::move(command));
}

bool ShellReader::take_function(const ShellCommand& command) {
  const bool has_word = command.front() == "function" && command.size() > 1;
  if (!has_word && (command.size() != 1 || peek() != '(' || peek(1) != ')')) return false;
  std::size_t begin = at_;
  if (command.back() != "{") {
    begin = text_.find_first_not_of("() \t\r\n", at_);
    if (begin == std::string_view::npos || text_[begin++] != '{') return false;
  }
  const std::size_t end = end_of_body(text_, begin);
  if (end == std::string_view::npos) return false;
  functions_.by_name[command[has_word ? 1 : 0]] = {std::string(text_.substr(begin, end - begin)),
                                                   line_of(begin)};
  at_ = end;
  return true;
}

bool ShellReader::call_function(const ShellCommand& command, std::vector<ShellCommand>& commands) {
  const auto found = functions_.by_name.find(command.front());
  if (found == functions_.by_name.end() || functions_.calls == ShellFunctions::kMostCalls)
    return false;
  ++functions_.calls;
  found->second.is_called = true;
  const ShellFunction function = found->second;
  const std::vector<std::string> values(command.begin() + 1, command.end());
  const bool is_known = unknown_.empty();
  const bool was_in_function = variables_.set_in_function(!is_known);
  const auto parameters = variables_.replace_parameters(is_known ? &values : nullptr);
  read_as_script(function.body, {}, commands, function.line);
  variables_.restore_parameters(parameters);
  variables_.set_in_function(was_in_function);
  return true;
}

void ShellReader::begin_loop(const ShellCommand& command) {
  if (command.size() < 3 || command[2] != "in") return;
  const std::string& name = command[1];
  if (command.size() == 3)
    return variables_.set_unknown(name, fmt::format("${}, the variable of a loop", name));
  variables_.set(name, {command[3]});
  doubtful_.erase(name);
  if (command.size() > 4) doubtful_[name] = {line_of(at_), joined_words(command), "", command[3]};
}

void ShellReader::read_inner_script(const ShellCommand& command,
                                    std::vector<ShellCommand>& commands) {
  const auto is_shell = [](const std::string& word) {
    return word == "bash" || word == "sh" || word.ends_with("/bash") || word.ends_with("/sh");
  };
  const auto shell = std::find_if(command.begin(), command.end(), is_shell);
  const auto text = std::find_if(shell, command.end(), [](const std::string& word) {
    return word.starts_with("-") && !word.starts_with("--") && word.ends_with("c");
  });
  if (command.end() - text >= 2) read_as_script(*(text + 1), {command.begin(), shell}, commands);
}

bool ShellReader::read_as_script(const std::string& text, const ShellCommand& launcher,
                                 std::vector<ShellCommand>& commands, std::int64_t first_line) {
  constexpr int kDeepestShell = 8;
  if (depth_ >= kDeepestShell) return false;
  ShellReader inner(text, source_, variables_, functions_, script_);
  inner.depth_ = depth_ + 1;
  inner.expanded_ = expanded_;
  inner.first_line_ = first_line;
  inner.doubtful_ = doubtful_;
  inner.is_called_in_doubt_ = is_in_doubt();
  std::vector<ShellCommand> inner_commands;
  bool is_script = true;
  try {
    inner.read(inner_commands);
  } catch (const InputError&) {  // The text may be for another shell than this one.
    is_script = false;
  }
  expanded_ = inner.expanded_;
  doubtful_ = std::move(inner.doubtful_);
  for (const ShellCommand& each : inner_commands) {
    ShellCommand& whole = commands.emplace_back(launcher);
    whole.insert(whole.end(), each.begin(), each.end());
  }
  return is_script;
}

ShellScript read_shell_script(std::string_view text, const std::string& source,
                              const ScriptParameters& parameters) {
  ShellScript script;
  ShellVariables variables(parameters);
  ShellFunctions functions;
  ShellReader reader(text, source, variables, functions, script);
  reader.read(script.commands);
  reader.read_uncalled(script.commands);
  const std::vector<std::string> comments = script.comments;
  const std::set<std::string> unset = script.unset, taken_as_unset = script.taken_as_unset;
  const auto conditional = script.conditional;
  for (const std::string& comment : comments) {
    try {
      ShellReader(comment, source, variables, functions, script).read(script.commented_commands);
    } catch (const InputError&) {  // Most comments are prose.
    }
  }
  script.comments = comments;
  script.unset = unset;
  script.taken_as_unset = taken_as_unset;
  script.conditional = conditional;
  return script;
}

}  // namespace shardwright::planner
