// The words of a shell's command while they are read.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardwright::planner {

constexpr bool is_shell_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

constexpr bool is_shell_name_part(char c) {
  return is_shell_name_start(c) || (c >= '0' && c <= '9');
}

constexpr bool is_shell_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// The words that a value becomes: texts join the last one, blanks of what is expanded end it.
class ShellWords {
 public:
  void add(char c) { open() += c; }
  void add(std::string_view text) { open() += text; }
  // A word may be empty where it has quotes.
  void begin() { open(); }
  void end() { is_open_ = false; }

  void add_split(std::string_view text) {
    for (const char c : text) {
      if (is_shell_blank(c) || c == '\n')
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

inline std::string joined_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

inline std::string shortened_text(std::string_view text, std::size_t longest) {
  return std::string(text.substr(0, longest)) + (text.size() <= longest ? "" : "…");
}

// True for words in front of a command or an assignment, "export" and "then", for example.
inline bool may_precede_assignment(std::string_view word) {
  return word == "export" || word == "local" || word == "declare" || word == "readonly" ||
         word == "then" || word == "else" || word == "do" || word == "{";
}

// The flag whose value begins at a place of a script: "--seq-length" of "--seq-length "$2"". Empty
// if there is none.
inline std::string_view flag_before(std::string_view script, std::size_t at) {
  while (at > 0 && std::string_view(" \t\r\n\\\"'=").find(script[at - 1]) != std::string_view::npos)
    --at;
  const std::size_t end = at;
  while (at > 0 && (is_shell_name_part(script[at - 1]) || script[at - 1] == '-')) --at;
  const std::string_view flag = script.substr(at, end - at);
  return flag.starts_with("--") ? flag : std::string_view();
}

}  // namespace shardwright::planner
