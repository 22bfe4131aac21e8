// The variables and positional parameters of a shell script, and why some have no value.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardwright::planner {

// The positional parameters with which a script is called.
struct ScriptParameters {
  // $1, $2 …; none where nobody states them.
  std::optional<std::vector<std::string>> values;
  // The place that states them, for errors.
  std::string stated_by = "the caller of the script";
};

class ShellVariables {
 public:
  using Values = std::map<std::string, std::vector<std::string>>;

  explicit ShellVariables(const ScriptParameters& parameters);

  // None of a name without a value; the items of a list otherwise.
  const std::vector<std::string>* find(const std::string& name) const;
  // The same as one text, "" if there is none.
  std::string text(const std::string& name) const;
  void set(const std::string& name, std::vector<std::string> items);
  // The name has no value because of what `cause` says.
  void set_unknown(const std::string& name, const std::string& cause);

  // Why the name has no value: "$2, a positional parameter that --arguments states". Empty where it
  // has an empty one.
  std::string cause(const std::string& name) const;
  // True for names that a script may take from its environment, which no one set here.
  bool is_of_environment(const std::string& name) const;

  // The positional parameters move on by one.
  void shift();
  // From here on nobody knows the positional parameters.
  void forget_parameters();
  // The positional parameters, instead of which those of a called function count until they are
  // restored. Nobody knows these if `values` is null.
  Values replace_parameters(const std::vector<std::string>* values);
  void restore_parameters(const Values& parameters);
  // In a function whose call is not known nobody knows the positional parameters.
  bool set_in_function(bool in_function) { return std::exchange(in_function_, in_function); }

 private:
  void set_parameters(const std::vector<std::string>& values);

  Values values_;
  std::map<std::string, std::string> causes_;
  std::string stated_by_;
  bool in_function_ = false;
};

}  // namespace shardwright::planner
