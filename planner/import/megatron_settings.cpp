#include "planner/import/megatron_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>

namespace shardwright::planner {
namespace {

constexpr std::int64_t kMostCount = std::int64_t{1} << 40U;
constexpr std::size_t kMostLayers = 1'000'000;

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  return error == std::errc() && end == last ? std::optional(value) : std::nullopt;
}

// Sums of lists, each of which may be repeated.
class LayerExpression {
 public:
  explicit LayerExpression(const std::string& text) : text_(text) {}

  std::optional<std::vector<bool>> value() {
    const auto flags = sum(0);
    return next() == '\0' ? flags : std::nullopt;
  }

 private:
  using Flags = std::optional<std::vector<bool>>;

  char next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  Flags sum(int depth) {
    Flags flags = repeated(depth);
    while (flags && next() == '+') {
      ++at_;
      const Flags more = repeated(depth);
      if (!more || flags->size() + more->size() > kMostLayers) return std::nullopt;
      flags->insert(flags->end(), more->begin(), more->end());
    }
    return flags;
  }

  Flags repeated(int depth) {
    Flags flags = operand(depth);
    while (flags && next() == '*') {
      ++at_;
      const auto times = number();
      if (!times || static_cast<std::size_t>(*times) * flags->size() > kMostLayers)
        return std::nullopt;
      const std::vector<bool> once = std::move(*flags);
      flags.emplace();
      for (std::int64_t i = 0; i < *times; ++i)
        flags->insert(flags->end(), once.begin(), once.end());
    }
    return flags;
  }

  Flags operand(int depth) {
    constexpr int kDeepestBrackets = 32;
    const char bracket = next();
    if (depth > kDeepestBrackets || (bracket != '(' && bracket != '[')) return std::nullopt;
    ++at_;
    const Flags flags = bracket == '(' ? sum(depth + 1) : numbers();
    if (!flags || next() != (bracket == '(' ? ')' : ']')) return std::nullopt;
    ++at_;
    return flags;
  }

  Flags numbers() {
    std::vector<bool> flags;
    while (next() != ']') {
      const auto value = number();
      if (!value || flags.size() == kMostLayers) return std::nullopt;
      flags.push_back(*value != 0);
      if (next() == ',') ++at_;
    }
    return flags;
  }

  // At most a million.
  std::optional<std::int64_t> number() {
    next();
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    const auto value =
        whole_number<std::int64_t>(std::string_view(text_).substr(begin, at_ - begin));
    return value && *value <= static_cast<std::int64_t>(kMostLayers) ? value : std::nullopt;
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace

const std::string* MegatronSettings::find(const std::string& name) {
  read_.insert(name);
  const auto found = launch_.values.find(name);
  return found == launch_.values.end() ? nullptr : &found->second;
}

std::string MegatronSettings::text(const std::string& name) {
  const std::string* found = find(name);
  return found == nullptr ? "" : *found;
}

bool MegatronSettings::is_on(const std::string& name, bool otherwise) {
  const std::string* found = find(name);
  if (found == nullptr) return otherwise;
  if (*found == "True" || *found == "true" || *found == "1") return true;
  if (*found != "False" && *found != "false" && *found != "0") refuse(name, "True or False");
  return false;
}

std::optional<std::int64_t> MegatronSettings::count(const std::string& name) {
  const std::string* found = find(name);
  if (found == nullptr) return std::nullopt;
  const auto value = whole_number<std::int64_t>(*found);
  if (value && *value >= 0 && *value <= kMostCount) return value;
  refuse(name, fmt::format("a whole number from 0 to {}", kMostCount));
  return std::nullopt;
}

std::int64_t MegatronSettings::count(const std::string& name, std::int64_t otherwise) {
  return count(name).value_or(otherwise);
}

std::int64_t MegatronSettings::required(const std::string& name) {
  if (find(name) == nullptr) add_problem(name, "nothing", "a number");
  return count(name, 1);
}

double MegatronSettings::real(const std::string& name, double otherwise) {
  const std::string* found = find(name);
  if (found == nullptr) return otherwise;
  const auto value = whole_number<double>(*found);
  if (value && std::isfinite(*value)) return *value;
  refuse(name, "a number");
  return otherwise;
}

void MegatronSettings::refuse(const std::string& name, const std::string& expected) {
  // A switch of a script that should have a value.
  const bool lacks_value = !launch_.complete && text(name) == "True";
  if (!lacks_value) return refuse_value(name, expected);
  const auto cause = launch_.without_value.find(name);
  add_problem(
      name,
      cause == launch_.without_value.end() ? "no value" : "no value, as it is " + cause->second,
      expected);
}

void MegatronSettings::refuse_value(const std::string& name, const std::string& expected) {
  const std::string value = text(name);
  add_problem(name, value.empty() ? "nothing" : value, expected);
}

void MegatronSettings::add_problem(const std::string& name, const std::string& found,
                                   const std::string& expected) {
  if (refused_.insert(name).second) problems_.add(flag_of(name), found, expected);
}

void MegatronSettings::refuse_program(const std::string& expected) {
  problems_.add("the program", launch_.program, expected);
}

std::vector<std::string> MegatronSettings::words_of_program() const {
  const std::string& program = launch_.program;
  const std::size_t folder = program.rfind('/');
  std::vector<std::string> words(1);
  for (const char c : program.substr(folder == std::string::npos ? 0 : folder + 1)) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0)
      words.emplace_back();
    else
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return words;
}

std::vector<std::string> MegatronSettings::unread() const {
  std::vector<std::string> flags;
  for (const auto& [name, value] : launch_.values)
    if (!read_.contains(name)) flags.push_back(flag_of(name));
  return flags;
}

std::string flag_of(const std::string& name) {
  std::string flag = "--" + name;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::optional<std::vector<bool>> layer_flags(const std::string& text, std::int64_t layers) {
  const bool is_expression = text.find('[') != std::string::npos;
  const std::string expression = is_expression ? text : "[" + text + "]";
  auto flags = LayerExpression(expression).value();
  if (flags && static_cast<std::int64_t>(flags->size()) != layers) flags.reset();
  return flags;
}

}  // namespace shardwright::planner
