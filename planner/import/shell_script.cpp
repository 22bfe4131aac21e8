#include "planner/import/shell_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "planner/import/shell_arithmetic.hpp"
#include "planner/import/shell_conditions.hpp"
#include "planner/import/shell_functions.hpp"
#include "planner/import/shell_words.hpp"

namespace shardwright::planner {
namespace {

constexpr std::size_t kMostValueBytes = 1U << 20U;
constexpr int kDeepest = 64;

class ShellReader {
 public:
  ShellReader(std::string_view text, const std::string& source, ShellVariables& variables,
              ShellFunctions& functions, ShellScript& script)
      : text_(text),
        source_(source),
        variables_(variables),
        functions_(functions),
        script_(script) {}

  void read(std::vector<ShellCommand>& commands) {
    while (at_ < text_.size()) {
      skip_arithmetic();
      ShellCommand command = read_command();
      if (!command.empty() && !blocks_.skips()) follow(std::move(command), commands);
      if (at_ < text_.size()) ++at_;
    }
  }

  // Those that nothing calls count behind all other commands: others may call them.
  void read_uncalled(std::vector<ShellCommand>& commands) {
    const bool before = variables_.set_in_function(true);
    const auto functions = functions_.by_name;
    for (const auto& [name, function] : functions)
      if (!function.is_called) read_as_script(function.body, {}, commands, function.line);
    variables_.set_in_function(before);
  }

 private:
  static constexpr std::string_view kSeparators = "\n;&|()";

  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  bool ends_command() const {
    return at_ >= text_.size() || kSeparators.find(peek()) != std::string_view::npos;
  }

  // Blanks, continued lines and, where a word may begin, comments.
  void skip_blanks() {
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

  // "((TP *= 2))" changes a variable in a way that is not followed.
  void skip_arithmetic() {
    const std::size_t begin = at_, end = text_.find("))", at_);
    if (peek() != '(' || peek(1) != '(' || end == std::string_view::npos) return;
    const std::string_view inner = text_.substr(begin + 2, end - begin - 2);
    std::size_t name = 0;
    while (name < inner.size() && !is_shell_name_start(inner[name])) ++name;
    std::size_t behind = name;
    while (behind < inner.size() && is_shell_name_part(inner[behind])) ++behind;
    at_ = end + 2;
    const std::string_view rest = inner.substr(behind);
    const std::size_t equals = rest.find('=');
    const bool assigns = equals != std::string_view::npos &&
                         !rest.substr(equals).starts_with("==") &&
                         rest.find_first_of("<>!=") >= equals;
    const bool counts =
        inner.find("++") != std::string_view::npos || inner.find("--") != std::string_view::npos;
    if ((assigns || counts) && !blocks_.skips())
      variables_.set_unknown(std::string(inner.substr(name, behind - name)),
                             beginning(begin) + ", which is not followed");
  }

  ShellCommand read_command() {
    ShellWords words;
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

  void follow(ShellCommand command, std::vector<ShellCommand>& commands) {
    if (take_function(command) || call_function(command, commands)) return;
    const std::string& name = command.front();
    if (name == "unset")
      for (auto each = command.begin() + 1; each != command.end(); ++each)
        variables_.set(*each, {});
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

  // "NAME() {" or "function NAME {", which goes on behind its body.
  bool take_function(const ShellCommand& command) {
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

  bool call_function(const ShellCommand& command, std::vector<ShellCommand>& commands) {
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

  // The first turn of a loop stands for all.
  void begin_loop(const ShellCommand& command) {
    if (command.size() < 3 || command[2] != "in") return;
    const std::string& name = command[1];
    if (command.size() == 3)
      return variables_.set_unknown(name, fmt::format("${}, the variable of a loop", name));
    variables_.set(name, {command[3]});
    doubtful_.erase(name);
    if (command.size() > 4) doubtful_[name] = {line_of(at_), joined_words(command), "", command[3]};
  }

  // The commands of "srun … bash -c '$LAUNCHER $CMD'", with the words before the inner shell.
  void read_inner_script(const ShellCommand& command, std::vector<ShellCommand>& commands) {
    const auto is_shell = [](const std::string& word) {
      return word == "bash" || word == "sh" || word.ends_with("/bash") || word.ends_with("/sh");
    };
    const auto shell = std::find_if(command.begin(), command.end(), is_shell);
    const auto text = std::find_if(shell, command.end(), [](const std::string& word) {
      return word.starts_with("-") && !word.starts_with("--") && word.ends_with("c");
    });
    if (command.end() - text >= 2) read_as_script(*(text + 1), {command.begin(), shell}, commands);
  }

  // The commands of a text, each behind the words of `launcher`. False where it is no script.
  bool read_as_script(const std::string& text, const ShellCommand& launcher,
                      std::vector<ShellCommand>& commands, std::int64_t first_line = 1) {
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

  bool is_in_doubt() const { return is_called_in_doubt_ || blocks_.is_in_doubt(); }

  // Remembers an assignment that ends here and began at `begin`, until another one is sure to
  // follow it.
  void note_condition(const std::string& name, std::size_t begin, const std::string& before) {
    doubtful_.erase(name);
    if (!is_in_doubt()) return;
    constexpr std::size_t kLongest = 60;
    const std::string_view text = text_.substr(begin, at_ - begin);
    doubtful_[name] = {line_of(begin), shortened_text(text, std::min(text.find('\n'), kLongest)),
                       before, ""};
  }

  // NAME=…, NAME+=…, NAME=(…).
  bool take_assignment() {
    const std::size_t begin = at_;
    std::size_t end = at_;
    if (!is_shell_name_start(peek())) return false;
    while (end < text_.size() && is_shell_name_part(text_[end])) ++end;
    const bool appends = text_.substr(end).starts_with("+=");
    if (!appends && !text_.substr(end).starts_with("=")) return false;
    const std::string name(text_.substr(at_, end - at_));
    at_ = end + (appends ? 2 : 1);
    const std::string before_unknown = std::exchange(unknown_, "");
    const std::string before = variables_.text(name);
    std::vector<std::string> value;
    if (const auto* items = variables_.find(name); appends && items != nullptr) value = *items;
    if (peek() == '(') {
      const std::vector<std::string> items = read_array();
      value.insert(value.end(), items.begin(), items.end());
    } else {
      ShellWords word;
      word.begin();
      read_word(word, false);
      const std::string text = joined_words(word.take());
      if (value.empty())
        value = {text};
      else
        value.back() += text;
    }
    const std::string unknown = std::exchange(unknown_, before_unknown);
    if (blocks_.skips()) return true;
    std::size_t bytes = 0;
    for (const std::string& each : value) bytes += each.size();
    if (bytes > kMostValueBytes) refuse(name + " of more than 1 MiB", "a launch script");
    if (joined_words(value).empty() && !unknown.empty())
      variables_.set_unknown(name, unknown);
    else
      variables_.set(name, std::move(value));
    if (!appends || is_in_doubt()) note_condition(name, begin, before);
    return true;
  }

  std::vector<std::string> read_array() {
    ShellWords words;
    ++at_;
    for (;;) {
      skip_blanks();
      if (at_ >= text_.size()) refuse("the end of the script", "')'");
      if (peek() == ')') break;
      if (peek() == '\n') {
        ++at_;
        continue;
      }
      const std::size_t before = at_;
      read_word(words, true);
      words.end();
      if (at_ == before) ++at_;
    }
    ++at_;
    return words.take();
  }

  void read_word(ShellWords& words, bool splits) {
    for (;;) {
      const char c = peek();
      if (at_ >= text_.size() || is_shell_blank(c) || c == '<' || c == '>' ||
          kSeparators.find(c) != std::string_view::npos)
        return;
      if (c == '\'') {
        read_single_quotes(words);
      } else if (c == '"') {
        read_double_quotes(words);
      } else if (c == '$' || c == '`') {
        expand(words, splits ? Expansion::Splits : Expansion::Joins);
      } else if (c == '\\') {
        if (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n')) return;
        ++at_;
        if (at_ < text_.size()) words.add(text_[at_++]);
      } else {
        words.add(text_[at_++]);
      }
    }
  }

  void read_single_quotes(ShellWords& words) {
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) refuse("a quotation mark that is not closed", "'");
    words.begin();
    words.add(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
  }

  void read_double_quotes(ShellWords& words) {
    words.begin();
    const std::size_t begin = at_++;
    while (peek() != '"') {
      if (at_ >= text_.size()) {
        at_ = begin;
        refuse("a quotation mark that is not closed", "\"");
      }
      if (peek() == '\\' && at_ + 1 < text_.size()) {
        const char next = text_[at_ + 1];
        at_ += 2;
        if (next == '\n') continue;
        if (next != '"' && next != '\\' && next != '$' && next != '`') words.add('\\');
        words.add(next);
      } else if (peek() == '$' || peek() == '`') {
        expand(words, Expansion::Quoted);
      } else {
        words.add(text_[at_++]);
      }
    }
    ++at_;
  }

  enum class Expansion : std::uint8_t {
    // Blanks of the value end words.
    Splits,
    // Items of an array become one word, as in an assignment.
    Joins,
    // Items of an array stay words of their own.
    Quoted,
  };

  void expand(ShellWords& words, Expansion how) {
    const std::size_t begin = at_;
    const std::string before = std::exchange(unknown_, "");
    if (peek() == '`') {
      at_ = std::min(text_.find('`', at_ + 1), text_.size() - 1) + 1;
      note_substitution(begin);
    } else if (peek(1) == '(' && peek(2) == '(') {
      const std::string_view inner = bracketed('(', ')');
      const auto value =
          arithmetic_value(inner.substr(1, inner.size() - 2), [this](const std::string& name) {
            if (variables_.find(name) == nullptr) note_missing(name);
            return variables_.text(name);
          });
      if (value)
        words.add(std::to_string(*value));
      else if (unknown_.empty())
        unknown_ = beginning(begin) + ", which has no value";
    } else if (peek(1) == '(') {
      bracketed('(', ')');
      note_substitution(begin);
    } else if (peek(1) == '{') {
      expand_braces(words, bracketed('{', '}'), how);
    } else {
      expand_name(words, how);
    }
    const std::string_view flag = flag_before(text_, begin);
    if (!unknown_.empty() && !flag.empty() && !blocks_.skips())
      script_.without_value[std::string(flag)] = unknown_;
    if (unknown_.empty()) unknown_ = before;
  }

  // Remembers why a name has no value. Conditions ask whether the environment has one: here it has
  // none.
  void note_missing(const std::string& name) {
    if (blocks_.skips()) return;
    script_.unset.insert(name);
    if (blocks_.reads_condition() && variables_.is_of_environment(name))
      script_.taken_as_unset.insert(name);
    else
      unknown_ = variables_.cause(name);
  }

  std::string beginning(std::size_t begin) const {
    constexpr std::size_t kLongest = 40;
    return shortened_text(text_.substr(begin, at_ - begin), kLongest);
  }

  void note_substitution(std::size_t begin) {
    unknown_ = "the output of " + beginning(begin);
    if (!blocks_.skips()) script_.substitutions.insert(beginning(begin));
  }

  void expand_name(ShellWords& words, Expansion how) {
    std::size_t end = ++at_;
    if (end < text_.size() && is_shell_name_start(text_[end])) {
      while (end < text_.size() && is_shell_name_part(text_[end])) ++end;
    } else if (end < text_.size() && kSpecial.find(text_[end]) != std::string_view::npos) {
      ++end;
    }
    const std::string name(text_.substr(at_, end - at_));
    at_ = end;
    if (name.empty()) return words.add('$');
    note_use(name);
    add_value(words, name, how);
  }

  void note_use(const std::string& name) {
    const auto doubtful = doubtful_.find(name);
    if (doubtful != doubtful_.end() && !blocks_.skips() &&
        variables_.text(name) != doubtful->second.otherwise)
      script_.conditional[name] = doubtful->second;
  }

  // Names of the positional parameters and of the shell's state.
  static constexpr std::string_view kSpecial = "0123456789@*#?!$-";

  // NAME, NAME[@], NAME:-default; other forms have no value here.
  void expand_braces(ShellWords& words, std::string_view inner, Expansion how) {
    std::size_t end = 0;
    while (end < inner.size() && is_shell_name_part(inner[end])) ++end;
    const std::string name(inner.substr(0, end));
    std::string_view rest = inner.substr(end);
    note_use(name);
    if (rest == "[@]" || rest == "[*]") rest = {};
    if (rest.starts_with(":")) rest.remove_prefix(1);
    const bool is_set = !variables_.text(name).empty();
    const bool has_default = rest.starts_with("-") || rest.starts_with("=");
    if (is_set && (rest.empty() || has_default || rest.starts_with("?")))
      return add_value(words, name, how);
    const bool is_alternative = rest.starts_with("+");
    if ((has_default && !is_set) || (is_alternative && is_set)) {
      const std::vector<std::string> value = words_of(rest.substr(1));
      add_items(words, value, how == Expansion::Quoted ? Expansion::Joins : how);
      if (blocks_.skips()) return;
      if (has_default && !value.empty()) script_.defaults.emplace(name, joined_words(value));
      if (rest.starts_with("=")) variables_.set(name, {joined_words(value)});
      return;
    }
    if (is_set || name.empty())
      unknown_ = fmt::format("${{{}}}, which is not followed", inner);
    else if (!is_alternative)
      note_missing(name);
  }

  std::vector<std::string> words_of(std::string_view text) {
    if (depth_ >= kDeepest) refuse("variables within variables", "fewer of them");
    ShellReader inner(text, source_, variables_, functions_, script_);
    inner.depth_ = depth_ + 1;
    ShellWords words;
    while (inner.at_ < text.size()) {
      const std::size_t before = inner.at_;
      inner.read_word(words, true);
      words.end();
      if (inner.at_ == before) ++inner.at_;
    }
    std::vector<std::string> value = words.take();
    if (value.empty()) unknown_ = inner.unknown_;
    return value;
  }

  void add_value(ShellWords& words, const std::string& name, Expansion how) {
    const std::vector<std::string>* items = variables_.find(name);
    if (items == nullptr) return note_missing(name);
    add_items(words, *items, how);
  }

  void add_items(ShellWords& words, const std::vector<std::string>& items, Expansion how) {
    expanded_ += 1;
    for (const std::string& item : items) expanded_ += item.size();
    if (expanded_ > 16 * kMostValueBytes) refuse("values of more than 16 MiB", "a launch script");
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0 && how == Expansion::Joins) words.add(' ');
      if (i > 0 && how != Expansion::Joins) words.end();
      if (how == Expansion::Splits)
        words.add_split(items[i]);
      else
        words.add(items[i]);
    }
  }

  // What stands between a dollar's bracket, which may hold others, and its end.
  std::string_view bracketed(char open, char close) {
    const std::size_t begin = at_ + 2;
    int depth = 1;
    for (std::size_t i = begin; i < text_.size(); ++i) {
      if (text_[i] == open) ++depth;
      if (text_[i] == close && --depth == 0) {
        at_ = i + 1;
        return text_.substr(begin, i - begin);
      }
    }
    refuse(fmt::format("'{}' that is not closed", open), fmt::format("'{}'", close));
  }

  [[noreturn]] void refuse(const std::string& found, const std::string& expected) const {
    throw InputError(source_, {{fmt::format("line {}", line_of(at_)), found, expected}});
  }

  std::int64_t line_of(std::size_t at) const {
    const auto end = text_.begin() + static_cast<std::ptrdiff_t>(std::min(at, text_.size()));
    return first_line_ + std::count(text_.begin(), end, '\n');
  }

  std::string_view text_;
  const std::string& source_;
  ShellVariables& variables_;
  ShellFunctions& functions_;
  ShellScript& script_;
  // The line of the script in which the text begins.
  std::int64_t first_line_ = 1;
  std::size_t at_ = 0;
  std::size_t expanded_ = 0;
  int depth_ = 0;
  ShellBlocks blocks_;
  bool is_called_in_doubt_ = false;
  // Why something in a command or a value is not known; "" if all is.
  std::string unknown_;
  // Variables whose value a condition decides about.
  std::map<std::string, ConditionalAssignment> doubtful_;
};

}  // namespace

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
