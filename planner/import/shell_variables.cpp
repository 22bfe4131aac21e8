#include "planner/import/shell_variables.hpp"

#include <fmt/format.h>

#include <utility>

#include "planner/import/shell_words.hpp"

namespace shardwright::planner {
namespace {

bool is_parameter(const std::string& name) {
  return !name.empty() && !is_shell_name_start(name.front());
}

}  // namespace

ShellVariables::ShellVariables(const ScriptParameters& parameters)
    : stated_by_(parameters.stated_by) {
  if (parameters.values) set_parameters(*parameters.values);
}

const std::vector<std::string>* ShellVariables::find(const std::string& name) const {
  if (in_function_ && is_parameter(name)) return nullptr;
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

std::string ShellVariables::text(const std::string& name) const {
  const std::vector<std::string>* items = find(name);
  return items == nullptr ? "" : joined_words(*items);
}

void ShellVariables::set(const std::string& name, std::vector<std::string> items) {
  values_[name] = std::move(items);
  causes_.erase(name);
}

void ShellVariables::set_unknown(const std::string& name, const std::string& cause) {
  values_.erase(name);
  causes_[name] = cause;
}

std::string ShellVariables::cause(const std::string& name) const {
  if (const auto known = causes_.find(name); known != causes_.end()) return known->second;
  if (find(name) != nullptr) return "";
  if (is_of_environment(name)) return fmt::format("${}, a variable of the environment", name);
  // Those behind the last one that is stated are empty.
  const bool is_number = name.find_first_not_of("0123456789") == std::string::npos && name != "0";
  if (is_number && !in_function_ && values_.contains("@")) return "";
  if (!is_number && name != "@" && name != "*" && name != "#")
    return fmt::format("${}, a state of the shell", name);
  return in_function_ ? fmt::format("${}, a parameter of a function", name)
                      : fmt::format("${}, a positional parameter that {} states", name, stated_by_);
}

bool ShellVariables::is_of_environment(const std::string& name) const {
  return !is_parameter(name) && !values_.contains(name) && !causes_.contains(name);
}

void ShellVariables::shift() {
  const auto known = values_.find("@");
  if (known == values_.end()) return;
  std::vector<std::string> values = std::move(known->second);
  forget_parameters();
  if (!values.empty()) values.erase(values.begin());
  set_parameters(values);
}

void ShellVariables::forget_parameters() {
  for (auto each = values_.begin(); each != values_.end();)
    each = is_parameter(each->first) ? values_.erase(each) : std::next(each);
}

ShellVariables::Values ShellVariables::replace_parameters(const std::vector<std::string>* values) {
  Values before;
  for (const auto& [name, items] : values_)
    if (is_parameter(name)) before.emplace(name, items);
  forget_parameters();
  if (values != nullptr) set_parameters(*values);
  return before;
}

void ShellVariables::restore_parameters(const Values& parameters) {
  forget_parameters();
  values_.insert(parameters.begin(), parameters.end());
}

void ShellVariables::set_parameters(const std::vector<std::string>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) values_[std::to_string(i + 1)] = {values[i]};
  values_["@"] = values_["*"] = values;
  values_["#"] = {std::to_string(values.size())};
}

}  // namespace shardwright::planner
