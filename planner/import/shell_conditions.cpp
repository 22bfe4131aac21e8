#include "planner/import/shell_conditions.hpp"

#include <charconv>
#include <utility>

namespace shardwright::planner {
namespace {

std::optional<bool> compared(const std::string& a, const std::string& operation,
                             const std::string& b) {
  const bool is_pattern = b.find_first_of("*?[") != std::string::npos;
  if (operation == "=" || operation == "==")
    return is_pattern ? std::nullopt : std::optional(a == b);
  if (operation == "!=") return is_pattern ? std::nullopt : std::optional(a != b);
  std::int64_t left = 0, right = 0;
  for (const auto& [text, number] : {std::pair(&a, &left), {&b, &right}}) {
    const char* const last = text->data() + text->size();
    const auto [end, error] = std::from_chars(text->data(), last, *number);
    if (error != std::errc() || end != last) return std::nullopt;
  }
  if (operation == "-eq") return left == right;
  if (operation == "-ne") return left != right;
  if (operation == "-lt") return left < right;
  if (operation == "-le") return left <= right;
  if (operation == "-gt") return left > right;
  if (operation == "-ge") return left >= right;
  return std::nullopt;
}

bool compares_texts(const std::string& word) {
  return word == "=" || word == "==" || word == "!=";
}

std::optional<bool> outcome_of_words(const std::vector<std::string>& words) {
  if (words.size() == 1) return words[0] != "-n";
  if (words.size() == 2) {
    if (words[0] == "-n") return true;
    if (words[0] == "-z") return false;
    if (compares_texts(words[0])) return compared("", words[0], words[1]);
    if (compares_texts(words[1])) return compared(words[0], words[1], "");
  }
  return words.size() == 3 ? compared(words[0], words[1], words[2]) : std::nullopt;
}

// What is known of "A && B" or "A || B".
std::optional<bool> joined_outcome(const std::optional<bool>& first, ShellJoin join,
                                   const std::optional<bool>& second) {
  // What decides alone, whatever the other one is.
  const bool decisive = join == ShellJoin::Or;
  if (join == ShellJoin::Follows) return second;
  if (first == decisive || second == decisive) return decisive;
  return first && second ? std::optional(!decisive) : std::nullopt;
}

}  // namespace

std::optional<bool> outcome_of_test(const std::vector<std::string>& command) {
  bool holds = true;
  auto first = command.begin(), last = command.end();
  const auto skip_negations = [&] {
    for (; first != last && *first == "!"; ++first) holds = !holds;
  };
  skip_negations();
  if (first == last) return std::nullopt;
  if (last - first == 1 && (*first == "true" || *first == ":" || *first == "false"))
    return (*first != "false") == holds;
  const std::string closing = *first == "[" ? "]" : *first == "[[" ? "]]" : "";
  if (closing.empty() && *first != "test") return std::nullopt;
  ++first;
  if (!closing.empty()) {
    if (first == last || *(last - 1) != closing) return std::nullopt;
    --last;
  }
  skip_negations();
  const std::optional<bool> outcome = outcome_of_words({first, last});
  return outcome ? std::optional(*outcome == holds) : std::nullopt;
}

void ShellBlocks::join(ShellJoin join) {
  join_ = join;
  list_before_ = join == ShellJoin::Follows ? std::nullopt : list_;
  skips_command_ = !reads_condition_ && ((join == ShellJoin::And && list_before_ == false) ||
                                         (join == ShellJoin::Or && list_before_ == true));
}

void ShellBlocks::begin(const std::string& word) {
  if (word == "if" || word == "elif") {
    before_ = word == "if" ? Block{} : pop();
    condition_.reset();
    reads_condition_ = true;
  } else if (word == "then") {
    Block block = std::exchange(before_, {});
    const bool never = block.is_taken || condition_ == false;
    block.run = never                                       ? Run::Never
                : condition_ == true && !block.may_be_taken ? Run::Surely
                                                            : Run::Perhaps;
    block.is_condition = true;
    block.is_taken = block.is_taken || condition_ == true;
    block.may_be_taken = block.may_be_taken || !condition_;
    reads_condition_ = false;
    push(block);
  } else if (word == "else" && !blocks_.empty() && blocks_.back().is_condition) {
    Block block = pop();
    block.run = block.is_taken ? Run::Never : block.may_be_taken ? Run::Perhaps : Run::Surely;
    push(block);
  } else if (word == "do" || word == "case") {
    reads_condition_ = false;
    push({});
  } else if (word == "fi" || word == "done" || word == "esac") {
    pop();
  } else if (word == "{") {
    Block block;
    block.run = skips_command_                                            ? Run::Never
                : join_ == ShellJoin::Follows || list_before_.has_value() ? Run::Surely
                                                                          : Run::Perhaps;
    block.is_brace = true;
    push(block);
  } else if (word == "}" && !blocks_.empty() && blocks_.back().is_brace) {
    pop();
  }
}

void ShellBlocks::end(std::vector<std::string> command, bool is_known) {
  if (!reads_condition_) {
    if (skipped_ > 0) return;
    // An assignment succeeds.
    const std::optional<bool> outcome = command.empty() ? std::optional(true)
                                        : is_known      ? outcome_of_test(command)
                                                        : std::nullopt;
    list_ = skips_command_ ? list_before_ : joined_outcome(list_before_, join_, outcome);
    return;
  }
  if (command.empty()) return;
  if (command.front() == "if" || command.front() == "elif") command.erase(command.begin());
  condition_ =
      joined_outcome(condition_, join_, is_known ? outcome_of_test(command) : std::nullopt);
}

void ShellBlocks::push(const Block& block) {
  blocks_.push_back(block);
  count(block.run, 1);
}

ShellBlocks::Block ShellBlocks::pop() {
  if (blocks_.empty()) return {};
  const Block block = blocks_.back();
  blocks_.pop_back();
  count(block.run, -1);
  return block;
}

void ShellBlocks::count(Run run, int change) {
  if (run == Run::Never) skipped_ += change;
  if (run == Run::Perhaps) doubtful_ += change;
}

}  // namespace shardwright::planner
