#include "planner/import/shell_functions.hpp"

#include <algorithm>

#include "planner/import/shell_words.hpp"

namespace shardwright::planner {
namespace {

constexpr std::string_view kEndsOfWords = "\n;&|()";

bool is_between_words(char c) {
  return is_shell_blank(c) || kEndsOfWords.find(c) != std::string_view::npos;
}

// The place of the mark that ends what begins at `at`: a quotation, an expansion or a comment.
std::size_t end_of_quotation(std::string_view script, std::size_t at) {
  const char mark = script[at];
  if (mark == '\'') return script.find('\'', at + 1);
  if (mark == '#') return script.find('\n', at);
  if (mark == '$') return script.find('}', at);
  for (++at; at < script.size() && script[at] != mark; ++at)
    if (script[at] == '\\') ++at;
  return at < script.size() ? at : std::string_view::npos;
}

}  // namespace

std::size_t end_of_body(std::string_view script, std::size_t begin) {
  int depth = 1;
  bool begins_word = true;
  for (std::size_t at = begin; at < script.size(); ++at) {
    const char c = script[at];
    const char next = at + 1 < script.size() ? script[at + 1] : '\n';
    const bool is_quotation =
        c == '\'' || c == '"' || c == '`' || (c == '#' && begins_word) || (c == '$' && next == '{');
    if (is_quotation) {
      at = end_of_quotation(script, at);
      if (at == std::string_view::npos) return at;
    } else if (c == '\\') {
      ++at;
    } else if (begins_word && is_between_words(next)) {
      if (c == '{') ++depth;
      if (c == '}' && --depth == 0) return at;
    }
    begins_word = at < script.size() && is_between_words(script[at]);
  }
  return std::string_view::npos;
}

}  // namespace shardwright::planner
