// The errors that Shardwright reports to people.
#pragma once

#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace shardwright {

// The values that may stand in a place, in words.
struct Expected {
  std::string text;
  // The valid one nearest to what was found; empty if none is near.
  std::string nearest;

  Expected() = default;
  Expected(const char* words) : text(words) {}
  Expected(std::string words, std::string near = {})
      : text(std::move(words)), nearest(std::move(near)) {}
  bool operator==(const Expected&) const = default;
};

// "one of a, b, c (did you mean "b"?)".
std::string to_string(const Expected& expected);

// One thing that is wrong with an input.
struct Problem {
  // A JSON pointer, an option or a line; empty for the input as a whole.
  std::string where;
  // The value found there.
  std::string found;
  Expected expected;

  bool operator==(const Problem&) const = default;
};

// "WHERE: found FOUND; expected EXPECTED", without a WHERE that is empty.
std::string to_string(const Problem& problem);

// Bad input: names the file (or option) and all its problems, printable. The command exits with 2.
class InputError : public std::runtime_error {
 public:
  InputError(std::string source, std::vector<Problem> problems);

  const std::string& source() const { return source_; }
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::string source_;
  std::vector<Problem> problems_;
};

// Collects the problems of one input while it is read, so that all are reported together.
class ProblemList {
 public:
  explicit ProblemList(std::string source) : source_(std::move(source)) {}

  void add(std::string where, std::string found, Expected expected);
  // Adds the problems of `error`, which a part of the input has, with `prefix` before their places.
  void add_all(const std::string& prefix, const InputError& error);
  // Reports later problems at `pointer` and below it at its member `key` and below that, because
  // the readers see a document in which that member has taken the place of its object.
  void add_level(const std::string& pointer, const std::string& key);
  bool empty() const { return problems_.empty(); }
  std::size_t size() const { return problems_.size(); }
  const std::string& source() const { return source_; }
  // Throws InputError if a problem was added.
  void throw_if_any() const;

 private:
  std::string in_file(const std::string& where) const;

  std::string source_;
  std::vector<Problem> problems_;
  // The key of each pointer.
  std::map<std::string, std::string> levels_;
};

// A run that failed although its input was good (an unwritable file, say). The command exits
// with 1.
class RuntimeFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Prints what was violated and aborts: a broken invariant is a defect of Shardwright, never of its
// input.
[[noreturn]] void fail_invariant(const char* condition, const char* file, int line,
                                 const std::string& message);

}  // namespace shardwright

// Active in all builds. `message` says which value broke the invariant.
#define SHARDWRIGHT_CHECK(condition, message) \
  ((condition) ? static_cast<void>(0)         \
               : ::shardwright::fail_invariant(#condition, __FILE__, __LINE__, message))
