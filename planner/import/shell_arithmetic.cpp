#include "planner/import/shell_arithmetic.hpp"

#include <cctype>
#include <charconv>

namespace shardwright::planner {
namespace {

constexpr int kDeepestBrackets = 64;

class Arithmetic {
 public:
  Arithmetic(std::string_view text, const ShellValue& value_of)
      : text_(text), value_of_(value_of) {}

  std::optional<std::int64_t> value() {
    const auto result = choice(0);
    skip();
    return at_ == text_.size() ? result : std::nullopt;
  }

 private:
  using Value = std::optional<std::int64_t>;

  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  char next() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  // "A > 1 ? B : C".
  Value choice(int depth) {
    const Value condition = comparison(depth);
    if (!condition || next() != '?') return condition;
    ++at_;
    const Value first = choice(depth + 1);
    if (next() != ':') return std::nullopt;
    ++at_;
    const Value second = choice(depth + 1);
    return *condition != 0 ? first : second;
  }

  Value comparison(int depth) {
    const Value left = sum(depth);
    if (!left) return left;
    next();
    for (const std::string_view operation : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!text_.substr(at_).starts_with(operation)) continue;
      at_ += operation.size();
      const Value right = sum(depth);
      if (!right) return right;
      const bool equal = *left == *right, less = *left < *right;
      const char first = operation.front();
      const bool or_equal = operation.size() == 2 && equal;
      if (first == '=') return equal;
      if (first == '!') return !equal;
      return or_equal || (first == '<' ? less : !less && !equal);
    }
    return left;
  }

  Value sum(int depth) {
    Value left = product(depth);
    while (left && (next() == '+' || next() == '-')) {
      const char sign = text_[at_++];
      const Value right = product(depth);
      std::int64_t result = 0;
      const bool overflows =
          !right || (sign == '+' ? __builtin_add_overflow(*left, *right, &result)
                                 : __builtin_sub_overflow(*left, *right, &result));
      left = overflows ? Value() : result;
    }
    return left;
  }

  Value product(int depth) {
    Value left = operand(depth);
    while (left && (next() == '*' || next() == '/' || next() == '%')) {
      const char sign = text_[at_++];
      const Value right = operand(depth);
      std::int64_t result = 0;
      if (!right || (sign != '*' && *right <= 0)) return std::nullopt;
      if (sign == '*' && __builtin_mul_overflow(*left, *right, &result)) return std::nullopt;
      left = sign == '*' ? result : sign == '/' ? *left / *right : *left % *right;
    }
    return left;
  }

  Value operand(int depth) {
    if (depth > kDeepestBrackets) return std::nullopt;
    if (next() == '(') {
      ++at_;
      const Value inner = choice(depth + 1);
      if (next() != ')') return std::nullopt;
      ++at_;
      return inner;
    }
    const bool is_expanded = next() == '$';
    if (is_expanded) ++at_;
    const bool braced = next() == '{';
    if (braced) ++at_;
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    const std::string name(text_.substr(begin, at_ - begin));
    if (braced && next() == '}') ++at_;
    const bool is_number =
        !is_expanded && name.find_first_not_of("0123456789") == std::string::npos;
    return number_of(is_number ? name : value_of_(name));
  }

  static Value number_of(const std::string& text) {
    std::int64_t number = 0;
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, number);
    return error == std::errc() && end == last ? Value(number) : std::nullopt;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  const ShellValue& value_of_;
};

}  // namespace

std::optional<std::int64_t> arithmetic_value(std::string_view text, const ShellValue& value_of) {
  return Arithmetic(text, value_of).value();
}

}  // namespace shardwright::planner
