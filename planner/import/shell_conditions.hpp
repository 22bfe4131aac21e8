// Which parts of a shell script run, as far as its conditions are known without running anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardwright::planner {

// How a command is joined to the one before it.
enum class ShellJoin : std::uint8_t { Follows, And, Or };

// The outcome of "[ A = B ]", "[[ -n A ]]" or "test 1 -lt 2", with words that are expanded and
// empty ones left out; none of other commands.
std::optional<bool> outcome_of_test(const std::vector<std::string>& command);

// The conditions, loops and cases around a command. Only words behind a condition or a list open
// one, because prose of texts within a script begins with "if" and "for", too.
class ShellBlocks {
 public:
  // The first word of a command, or one such as "then" before it.
  void begin(const std::string& word);
  // The whole command; `is_known` is false where it uses a value that nobody knows.
  void end(std::vector<std::string> command, bool is_known, ShellJoin join);

  bool reads_condition() const { return reads_condition_; }
  // True in a branch that is not taken.
  bool skips() const { return skipped_ > 0; }
  // True in loops, cases, and branches of which nobody knows whether they are taken.
  bool is_in_doubt() const { return doubtful_ > 0; }

 private:
  enum class Run : std::uint8_t { Surely, Perhaps, Never };
  struct Block {
    Run run = Run::Perhaps;
    bool is_condition = false;
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
  int skipped_ = 0, doubtful_ = 0;
};

}  // namespace shardwright::planner
