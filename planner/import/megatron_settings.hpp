// The values of Megatron-LM's arguments, each read as what it is, and a record of those that were
// read.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "planner/import/launch_arguments.hpp"

namespace shardwright::planner {

// Values that are no numbers where one belongs become problems at the argument's flag. Counts are
// at least 0, so that they fit the fields of models and plans; the rules of both are checked later.
class MegatronSettings {
 public:
  MegatronSettings(const LaunchArguments& launch, ProblemList& problems)
      : launch_(launch), problems_(problems) {}

  // Empty if it is not there.
  std::string text(const std::string& name);
  bool is_on(const std::string& name, bool otherwise = false);
  std::optional<std::int64_t> count(const std::string& name);
  std::int64_t count(const std::string& name, std::int64_t otherwise);
  // A problem where it is not there.
  std::int64_t required(const std::string& name);
  double real(const std::string& name, double otherwise);

  // The value is one that its kind does not allow.
  void refuse(const std::string& name, const std::string& expected);
  // The value is one of its kind, and what it asks for is not simulated.
  void refuse_value(const std::string& name, const std::string& expected);
  void refuse_program(const std::string& expected);

  // In lower case: "pretrain" and "gpt" of pretrain_gpt.py. Empty where no program is known.
  std::vector<std::string> words_of_program() const;

  // The flags that nobody asked for, in the order of their names.
  std::vector<std::string> unread() const;

 private:
  const std::string* find(const std::string& name);
  // One for each name.
  void add_problem(const std::string& name, const std::string& found, const std::string& expected);

  const LaunchArguments& launch_;
  ProblemList& problems_;
  std::set<std::string> read_, refused_;
};

// "--num-layers" of "num_layers".
std::string flag_of(const std::string& name);

// A Python expression with a number for each layer, "([0]*3+[1]*58)", or the numbers with blanks
// between them: true where one is not zero. None of anything else, and of another number of layers.
std::optional<std::vector<bool>> layer_flags(const std::string& text, std::int64_t layers);

}  // namespace shardwright::planner
