// Reads the text of a shell script, command by command: shell_script.cpp follows commands,
// functions and conditions, shell_expansion.cpp reads assignments, words and what expands within
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/import/shell_conditions.hpp"
#include "planner/import/shell_functions.hpp"
#include "planner/import/shell_script.hpp"
#include "planner/import/shell_words.hpp"

namespace shardwright::planner {

class ShellReader {
 public:
  ShellReader(std::string_view text, const std::string& source, ShellVariables& variables,
              ShellFunctions& functions, ShellScript& script)
      : text_(text),
        source_(source),
        variables_(variables),
        functions_(functions),
        script_(script) {}

  void read(std::vector<ShellCommand>& commands);

  // Those that nothing calls count behind all other commands: others may call them.
  void read_uncalled(std::vector<ShellCommand>& commands);

 private:
  static constexpr std::string_view kSeparators = "\n;&|()";

  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  bool ends_command() const {
    return at_ >= text_.size() || kSeparators.find(peek()) != std::string_view::npos;
  }

  // Blanks, continued lines and, where a word may begin, comments.
  void skip_blanks();

  // "((TP > 2))" has an outcome, "((TP *= 2))" changes a variable in a way that is not followed.
  void skip_arithmetic();

  ShellCommand read_command();

  void follow(ShellCommand command, std::vector<ShellCommand>& commands);

  // "NAME() {" or "function NAME {", which goes on behind its body.
  bool take_function(const ShellCommand& command);

  bool call_function(const ShellCommand& command, std::vector<ShellCommand>& commands);

  // The first turn of a loop stands for all.
  void begin_loop(const ShellCommand& command);

  // The commands of "srun … bash -c '$LAUNCHER $CMD'", with the words before the inner shell.
  void read_inner_script(const ShellCommand& command, std::vector<ShellCommand>& commands);

  // The commands of a text, each behind the words of `launcher`. False where it is no script.
  bool read_as_script(const std::string& text, const ShellCommand& launcher,
                      std::vector<ShellCommand>& commands, std::int64_t first_line = 1);

  bool is_in_doubt() const { return is_called_in_doubt_ || blocks_.is_in_doubt(); }

  // Remembers an assignment that ends here and began at `begin`, until another one is sure to
  // follow it.
  void note_condition(const std::string& name, std::size_t begin, const std::string& before);

  // NAME=…, NAME+=…, NAME=(…).
  bool take_assignment();

  std::vector<std::string> read_array();

  void read_word(ShellWords& words, bool splits);

  void read_single_quotes(ShellWords& words);

  void read_double_quotes(ShellWords& words);

  enum class Expansion : std::uint8_t {
    // Blanks of the value end words.
    Splits,
    // Items of an array become one word, as in an assignment.
    Joins,
    // Items of an array stay words of their own.
    Quoted,
  };

  void expand(ShellWords& words, Expansion how);

  // Remembers why a name has no value. Conditions ask whether the environment has one: here it has
  // none.
  void note_missing(const std::string& name);

  std::string beginning(std::size_t begin) const;

  void note_substitution(std::size_t begin);

  void expand_name(ShellWords& words, Expansion how);

  void note_use(const std::string& name);

  // Names of the positional parameters and of the shell's state.
  static constexpr std::string_view kSpecial = "0123456789@*#?!$-";

  // NAME, NAME[@], NAME:-default; other forms have no value here.
  void expand_braces(ShellWords& words, std::string_view inner, Expansion how);

  std::vector<std::string> words_of(std::string_view text);

  void add_value(ShellWords& words, const std::string& name, Expansion how);

  void add_items(ShellWords& words, const std::vector<std::string>& items, Expansion how);

  // What stands between a dollar's bracket, which may hold others, and its end.
  std::string_view bracketed(char open, char close);

  [[noreturn]] void refuse(const std::string& found, const std::string& expected) const;

  std::int64_t line_of(std::size_t at) const;

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

}  // namespace shardwright::planner
