#include "planner/import/shell_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "core/base/error.hpp"
#include "planner/import/shell_arithmetic.hpp"

namespace shardwright::planner {
namespace {

constexpr std::size_t kMostValueBytes = 1U << 20U;
constexpr int kDeepest = 64;

using Variables = std::map<std::string, std::vector<std::string>>;

constexpr bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

constexpr bool is_name_part(char c) {
  return is_name_start(c) || (c >= '0' && c <= '9');
}

constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// The words that a value becomes: texts join the last one, blanks of what is expanded end it.
class Words {
 public:
  void add(char c) { open() += c; }
  void add(std::string_view text) { open() += text; }
  // A word may be empty where it has quotes.
  void begin() { open(); }
  void end() { is_open_ = false; }

  void add_split(std::string_view text) {
    for (const char c : text) {
      if (is_blank(c) || c == '\n')
        end();
      else
        add(c);
    }
  }

  std::vector<std::string> take() { return std::move(words_); }

 private:
  std::string& open() {
    if (!is_open_) words_.emplace_back();
    is_open_ = true;
    return words_.back();
  }

  std::vector<std::string> words_;
  bool is_open_ = false;
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

class ShellReader {
 public:
  ShellReader(std::string_view text, const std::string& source, Variables& variables,
              ShellScript& script)
      : text_(text), source_(source), variables_(variables), script_(script) {}

  void read(std::vector<ShellCommand>& commands) {
    while (at_ < text_.size()) {
      ShellCommand command = read_command();
      if (!command.empty()) {
        read_inner_script(command, commands);
        commands.push_back(std::move(command));
      }
      if (at_ < text_.size()) ++at_;
    }
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
      if (is_blank(peek())) {
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

  ShellCommand read_command() {
    Words words;
    ShellCommand command;
    bool may_assign = true;
    follows_outcome_ = at_ > 1 && (text_[at_ - 1] == '&' || text_[at_ - 1] == '|') &&
                       text_[at_ - 2] == text_[at_ - 1];
    for (skip_blanks(); !ends_command(); skip_blanks()) {
      if (may_assign && take_assignment()) continue;
      const bool is_redirection = peek() == '<' || peek() == '>';
      while (peek() == '<' || peek() == '>' || (is_redirection && peek() == '&')) ++at_;
      if (is_redirection) skip_blanks();
      Words word;
      read_word(word, true);
      if (is_redirection) continue;
      for (std::string& each : word.take()) {
        if (command.empty()) follow_block(each);
        may_assign = command.empty() && is_declaration(each);
        // A list that is unset, in quotes, is no word.
        if (!may_assign && !each.empty()) command.push_back(std::move(each));
      }
    }
    return command;
  }

  // The commands of "srun … bash -c '$LAUNCHER $CMD'", with the words before the inner shell.
  void read_inner_script(const ShellCommand& command, std::vector<ShellCommand>& commands) {
    constexpr int kDeepestShell = 4;
    const auto is_shell = [](const std::string& word) {
      return word == "bash" || word == "sh" || word.ends_with("/bash") || word.ends_with("/sh");
    };
    const auto shell = std::find_if(command.begin(), command.end(), is_shell);
    const auto text = std::find_if(shell, command.end(), [](const std::string& word) {
      return word.starts_with("-") && !word.starts_with("--") && word.ends_with("c");
    });
    if (command.end() - text < 2 || depth_ >= kDeepestShell) return;
    ShellReader inner(*(text + 1), source_, variables_, script_);
    inner.depth_ = depth_ + 1;
    inner.expanded_ = expanded_;
    std::vector<ShellCommand> inner_commands;
    try {
      inner.read(inner_commands);
    } catch (const InputError&) {  // The text may be for another shell than this one.
    }
    expanded_ = inner.expanded_;
    for (const ShellCommand& each : inner_commands) {
      ShellCommand& whole = commands.emplace_back(command.begin(), shell);
      whole.insert(whole.end(), each.begin(), each.end());
    }
  }

  static bool is_declaration(const std::string& word) {
    return word == "export" || word == "local" || word == "declare" || word == "readonly" ||
           word == "then" || word == "else" || word == "do" || word == "{";
  }

  // Counts the conditions and loops that the next command stands in. Only words that stand behind a
  // condition or a list count, because prose of texts within a script begins with "if" and "for",
  // too.
  void follow_block(const std::string& word) {
    if (word == "then" || word == "do" || word == "case") ++blocks_;
    if (word == "elif" || word == "fi" || word == "done" || word == "esac")
      blocks_ = std::max(0, blocks_ - 1);
  }

  // Remembers an assignment that ends here and began at `begin`, until another one is sure to
  // follow it.
  void note_condition(const std::string& name, std::size_t begin, const std::string& before) {
    doubtful_.erase(name);
    if (blocks_ == 0 && !follows_outcome_) return;
    constexpr std::size_t kLongest = 60;
    const std::string_view whole = text_.substr(begin, at_ - begin);
    const std::string_view text = whole.substr(0, std::min(whole.find('\n'), kLongest));
    doubtful_[name] = {line_of(begin), std::string(text) + (text.size() < whole.size() ? "…" : ""),
                       before};
  }

  // NAME=…, NAME+=…, NAME=(…).
  bool take_assignment() {
    const std::size_t begin = at_;
    std::size_t end = at_;
    if (!is_name_start(peek())) return false;
    while (end < text_.size() && is_name_part(text_[end])) ++end;
    const bool appends = text_.substr(end).starts_with("+=");
    if (!appends && !text_.substr(end).starts_with("=")) return false;
    const std::string name(text_.substr(at_, end - at_));
    at_ = end + (appends ? 2 : 1);
    const auto known = variables_.find(name);
    const std::string before = known == variables_.end() ? "" : joined(known->second);
    std::vector<std::string>& value = variables_[name];
    if (peek() == '(') {
      std::vector<std::string> items = read_array();
      if (!appends) value.clear();
      value.insert(value.end(), items.begin(), items.end());
    } else {
      Words word;
      word.begin();
      read_word(word, false);
      const std::string text = joined(word.take());
      if (appends && !value.empty())
        value.back() += text;
      else
        value = {text};
    }
    if (!appends || blocks_ > 0 || follows_outcome_) note_condition(name, begin, before);
    std::size_t bytes = 0;
    for (const std::string& each : value) bytes += each.size();
    if (bytes > kMostValueBytes) refuse(name + " of more than 1 MiB", "a launch script");
    return true;
  }

  std::vector<std::string> read_array() {
    Words words;
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

  void read_word(Words& words, bool splits) {
    for (;;) {
      const char c = peek();
      if (at_ >= text_.size() || is_blank(c) || c == '<' || c == '>' ||
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

  void read_single_quotes(Words& words) {
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) refuse("a quotation mark that is not closed", "'");
    words.begin();
    words.add(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
  }

  void read_double_quotes(Words& words) {
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

  void expand(Words& words, Expansion how) {
    const std::size_t begin = at_;
    if (peek() == '`') {
      at_ = std::min(text_.find('`', at_ + 1), text_.size() - 1) + 1;
      note_substitution(begin);
    } else if (peek(1) == '(' && peek(2) == '(') {
      const std::string_view inner = bracketed('(', ')');
      const auto value =
          arithmetic_value(inner.substr(1, inner.size() - 2), [this](const std::string& name) {
            const auto known = variables_.find(name);
            return known == variables_.end() ? name : joined(known->second);
          });
      if (value) words.add(std::to_string(*value));
    } else if (peek(1) == '(') {
      bracketed('(', ')');
      note_substitution(begin);
    } else if (peek(1) == '{') {
      expand_braces(words, bracketed('{', '}'), how);
    } else {
      expand_name(words, how);
    }
  }

  void note_substitution(std::size_t begin) {
    constexpr std::size_t kLongest = 40;
    const std::string_view whole = text_.substr(begin, at_ - begin);
    script_.substitutions.insert(whole.size() <= kLongest
                                     ? std::string(whole)
                                     : std::string(whole.substr(0, kLongest)) + "…");
  }

  void expand_name(Words& words, Expansion how) {
    std::size_t end = ++at_;
    if (end < text_.size() && is_name_start(text_[end])) {
      while (end < text_.size() && is_name_part(text_[end])) ++end;
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
    const auto value = variables_.find(name);
    if (doubtful != doubtful_.end() && value != variables_.end() &&
        joined(value->second) != doubtful->second.otherwise)
      script_.conditional[name] = doubtful->second;
  }

  // Names of the positional parameters and of the shell's state. Nobody knows their values.
  static constexpr std::string_view kSpecial = "0123456789@*#?!$-";

  // NAME, NAME[@], NAME:-default; other forms have no value here.
  void expand_braces(Words& words, std::string_view inner, Expansion how) {
    std::size_t end = 0;
    while (end < inner.size() && is_name_part(inner[end])) ++end;
    const std::string name(inner.substr(0, end));
    std::string_view rest = inner.substr(end);
    note_use(name);
    if (rest == "[@]" || rest == "[*]") rest = {};
    if (rest.starts_with(":")) rest.remove_prefix(1);
    const auto known = variables_.find(name);
    const bool is_set = known != variables_.end() && !joined(known->second).empty();
    const bool has_default = rest.starts_with("-") || rest.starts_with("=");
    if (is_set && (rest.empty() || has_default || rest.starts_with("?")))
      return add_value(words, name, how);
    const bool is_alternative = rest.starts_with("+");
    if ((has_default && !is_set) || (is_alternative && is_set)) {
      const std::vector<std::string> value = words_of(rest.substr(1));
      add_items(words, value, how == Expansion::Quoted ? Expansion::Joins : how);
      if (has_default && !value.empty()) script_.defaults.emplace(name, joined(value));
      if (rest.starts_with("=")) variables_[name] = {joined(value)};
      return;
    }
    if (!is_alternative && !name.empty()) script_.unset.insert(name);
  }

  std::vector<std::string> words_of(std::string_view text) {
    if (depth_ >= kDeepest) refuse("variables within variables", "fewer of them");
    ShellReader inner(text, source_, variables_, script_);
    inner.depth_ = depth_ + 1;
    Words words;
    while (inner.at_ < text.size()) {
      const std::size_t before = inner.at_;
      inner.read_word(words, true);
      words.end();
      if (inner.at_ == before) ++inner.at_;
    }
    return words.take();
  }

  void add_value(Words& words, const std::string& name, Expansion how) {
    const auto known = variables_.find(name);
    if (known == variables_.end()) {
      script_.unset.insert(name);
      return;
    }
    add_items(words, known->second, how);
  }

  void add_items(Words& words, const std::vector<std::string>& items, Expansion how) {
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
    return 1 + std::count(text_.begin(),
                          text_.begin() + static_cast<std::ptrdiff_t>(std::min(at, text_.size())),
                          '\n');
  }

  std::string_view text_;
  const std::string& source_;
  Variables& variables_;
  ShellScript& script_;
  std::size_t at_ = 0;
  std::size_t expanded_ = 0;
  int depth_ = 0;
  // The conditions and loops around a command, and whether it stands behind && or ||.
  int blocks_ = 0;
  bool follows_outcome_ = false;
  // Variables whose value a condition decides about.
  std::map<std::string, ConditionalAssignment> doubtful_;
};

}  // namespace

ShellScript read_shell_script(std::string_view text, const std::string& source) {
  ShellScript script;
  Variables variables;
  ShellReader(text, source, variables, script).read(script.commands);
  const std::vector<std::string> comments = script.comments;
  const std::set<std::string> unset = script.unset;
  const auto conditional = script.conditional;
  for (const std::string& comment : comments) {
    try {
      ShellReader(comment, source, variables, script).read(script.commented_commands);
    } catch (const InputError&) {  // Most comments are prose.
    }
  }
  script.comments = comments;
  script.unset = unset;
  script.conditional = conditional;
  return script;
}

}  // namespace shardwright::planner
