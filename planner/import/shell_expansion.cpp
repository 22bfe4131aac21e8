#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "planner/import/shell_arithmetic.hpp"
#include "planner/import/shell_reader.hpp"

namespace shardwright::planner {
namespace {

constexpr std::size_t kMostValueBytes = 1U << 20U;
constexpr int kDeepest = 64;

}  // namespace

bool ShellReader::take_assignment() {
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

void ShellReader::note_condition(const std::string& name, std::size_t begin,
                                 const std::string& before) {
  doubtful_.erase(name);
  if (!is_in_doubt()) return;
  constexpr std::size_t kLongest = 60;
  const std::string_view text = text_.substr(begin, at_ - begin);
  doubtful_[name] = {line_of(begin), shortened_text(text, std::min(text.find('\n'), kLongest)),
                     before, ""};
}

std::vector<std::string> ShellReader::read_array() {
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

void ShellReader::read_word(ShellWords& words, bool splits) {
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

void ShellReader::read_single_quotes(ShellWords& words) {
  const std::size_t end = text_.find('\'', at_ + 1);
  if (end == std::string_view::npos) refuse("a quotation mark that is not closed", "'");
  words.begin();
  words.add(text_.substr(at_ + 1, end - at_ - 1));
  at_ = end + 1;
}

void ShellReader::read_double_quotes(ShellWords& words) {
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

void ShellReader::expand(ShellWords& words, Expansion how) {
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

void ShellReader::note_missing(const std::string& name) {
  if (blocks_.skips()) return;
  script_.unset.insert(name);
  if (blocks_.reads_condition() && variables_.is_of_environment(name))
    script_.taken_as_unset.insert(name);
  else
    unknown_ = variables_.cause(name);
}

std::string ShellReader::beginning(std::size_t begin) const {
  constexpr std::size_t kLongest = 40;
  return shortened_text(text_.substr(begin, at_ - begin), kLongest);
}

void ShellReader::note_substitution(std::size_t begin) {
  unknown_ = "the output of " + beginning(begin);
  if (!blocks_.skips()) script_.substitutions.insert(beginning(begin));
}

void ShellReader::expand_name(ShellWords& words, Expansion how) {
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

void ShellReader::note_use(const std::string& name) {
  const auto doubtful = doubtful_.find(name);
  if (doubtful != doubtful_.end() && !blocks_.skips() &&
      variables_.text(name) != doubtful->second.otherwise)
    script_.conditional[name] = doubtful->second;
}

void ShellReader::expand_braces(ShellWords& words, std::string_view inner, Expansion how) {
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

std::vector<std::string> ShellReader::words_of(std::string_view text) {
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

void ShellReader::add_value(ShellWords& words, const std::string& name, Expansion how) {
  const std::vector<std::string>* items = variables_.find(name);
  if (items == nullptr) return note_missing(name);
  add_items(words, *items, how);
}

void ShellReader::add_items(ShellWords& words, const std::vector<std::string>& items,
                            Expansion how) {
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

std::string_view ShellReader::bracketed(char open, char close) {
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

void ShellReader::refuse(const std::string& found, const std::string& expected) const {
  throw InputError(source_, {{fmt::format("line {}", line_of(at_)), found, expected}});
}

std::int64_t ShellReader::line_of(std::size_t at) const {
  const auto end = text_.begin() + static_cast<std::ptrdiff_t>(std::min(at, text_.size()));
  return first_line_ + std::count(text_.begin(), end, '\n');
}

}  // namespace shardwright::planner
