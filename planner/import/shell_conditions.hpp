// Which parts of a shell script run, as far as its conditions are known without running anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardwright::planner {

// How a command is joined to the one before it.
enum class ShellJoin : std::uint8_t { Follows, And, Or };

// The outcome of "[ A = B ]", "[[ -n A ]]", "test 1 -lt 2", "true" or "false", with words that are
// expanded and empty ones left out; none of other commands.
std::optional<bool> outcome_of_test(const std::vector<std::string>& command);

// The conditions, loops, cases and lists around a command: of "[ A = B ] && C || D", C or D. Only
// words behind a condition or a list open one, because prose of texts within a script begins with
// "if" and "for", too.
class ShellBlocks {
 public:
  // Before the words of a command.
  void join(ShellJoin join);
  // The first word of a command, or one such as "then" before it.
  void begin(const std::string& word);
  // The whole command, which is empty where it has assignments alone; `is_known` is false where it
  // uses a value that nobody knows.
  void end(std::vector<std::string> command, bool is_known);

  bool reads_condition() const { return reads_condition_; }
  // True in a branch that is not taken.
  bool skips() const { return skipped_ > 0 || skips_command_; }
  // True in loops, cases, branches, and commands of a list, of which nobody knows whether they are
  // taken.
  bool is_in_doubt() const {
    return doubtful_ > 0 || (join_ != ShellJoin::Follows && !list_before_);
  }

 private:
  enum class Run : std::uint8_t { Surely, Perhaps, Never };
  struct Block {
    Run run = Run::Perhaps;
    bool is_condition = false, is_brace = false;
    // One of the branches up to here is taken, or may be.
    bool is_taken = false, may_be_taken = false;
  };

  void push(const Block& block);
  Block pop();
  void count(Run run, int change);

  std::vector<Block> blocks_;
  // The branches before the one whose condition is read.
  Block before_;
  std::optional<bool> condition_;
  bool reads_condition_ = false;
  // How the command is joined to its list, the outcome of what stands before it there, and that of
  // all up to here.
  ShellJoin join_ = ShellJoin::Follows;
  std::optional<bool> list_before_, list_;
  bool skips_command_ = false;
  int skipped_ = 0, doubtful_ = 0;
};

}  // namespace shardwright::planner
