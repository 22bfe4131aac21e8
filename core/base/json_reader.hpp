// Strict reading of JSON written by people.
//
// Every value is checked for type and range, unknown keys are refused with a "did you mean", and
// all problems of a file are collected (with their JSON pointers) before one InputError is thrown.
// A reader that met a problem returns a harmless in-range value and goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/enum_names.hpp"
#include "core/base/error.hpp"

namespace shardwright {

// Reads and parses a JSON file. Throws InputError if it is missing, unreadable, larger than 64 MiB,
// nested deeper than 100 levels, not JSON, holds a number outside the range of a double or the same
// key twice in one object.
nlohmann::json read_json_file(const std::filesystem::path& file);

// Parses text that is already in memory; `source` names it in errors.
nlohmann::json parse_json(std::string_view text, const std::string& source);

// Reads "-" as standard input and any other name as a file.
nlohmann::json read_json_argument(const std::string& file_or_dash);

// The name of the source in problems: the file, or "stdin".
std::string argument_source(const std::string& file_or_dash);

// Inclusive limits of an integer.
struct IntegerRange {
  std::int64_t least = 1;
  std::int64_t most = 1'000'000'000'000;
};

// Limits of a real number; `above_zero` excludes zero itself.
struct NumberRange {
  double least = 0.0;
  double most = 1e30;
  bool above_zero = true;
};

inline constexpr NumberRange kPositive{};
inline constexpr NumberRange kNonNegative{0.0, 1e30, false};
// An efficiency, a share: above 0, at most 1.
inline constexpr NumberRange kRatio{0.0, 1.0, true};
inline constexpr NumberRange kRatioOrZero{0.0, 1.0, false};

// Reads the members of one JSON object. The object and the problem list must outlive the reader.
class ObjectReader {
 public:
  // A value that is missing or no object is one problem, and its members then add none.
  ObjectReader(const nlohmann::json& value, std::string pointer, ProblemList& problems);

  const nlohmann::json& value() const { return *value_; }
  const std::string& pointer() const { return pointer_; }
  ProblemList& problems() const { return *problems_; }

  // True if the key is there and is not null.
  bool has(const std::string& key);
  // Counts a key as read that another reader takes.
  void allow(const std::string& key) { known_.push_back(key); }
  // Like `has`, without counting the key as read: for telling formats apart.
  bool peek(const std::string& key) const;

  // Required members: a missing key is a problem.
  std::int64_t integer(const std::string& key, IntegerRange range = {});
  double number(const std::string& key, NumberRange range = kPositive);
  bool boolean(const std::string& key);
  std::string text(const std::string& key);
  // Reads a text that is not empty.
  std::string name(const std::string& key);
  std::vector<std::int64_t> integers(const std::string& key, IntegerRange range = {});
  std::vector<double> numbers(const std::string& key, NumberRange range = kPositive);
  std::vector<std::string> texts(const std::string& key);
  ObjectReader object(const std::string& key);
  std::vector<ObjectReader> objects(const std::string& key);

  // Optional members: the fallback where the key is missing or null.
  std::int64_t integer_or(const std::string& key, std::int64_t fallback, IntegerRange range = {});
  double number_or(const std::string& key, double fallback, NumberRange range = kPositive);
  bool boolean_or(const std::string& key, bool fallback);
  std::string text_or(const std::string& key, const std::string& fallback);
  std::optional<ObjectReader> object_if(const std::string& key);

  // A text that must be one of `names`: its index.
  std::size_t choose(const std::string& key, std::span<const char* const> names);
  // An array of such texts.
  std::vector<std::size_t> choose_all(const std::string& key, std::span<const char* const> names);
  // A text that must be the name of an enumerator.
  template <NamedEnum E>
  E choice(const std::string& key) {
    return static_cast<E>(choose(key, names_of<E>()));
  }

  // All keys in file order of nlohmann::json (sorted); they count as read.
  std::vector<std::string> keys();
  // The raw value of a key; null if missing. It counts as read.
  const nlohmann::json& raw(const std::string& key);

  // Adds a problem at a member (or at the object itself, if `key` is empty).
  void problem(const std::string& key, std::string found, Expected expected);
  // Reports a problem about the value at the key: a value, null, or no such key.
  void problem_with(const std::string& key, Expected expected);

  // Adds a problem for each key that nobody asked for. Not called for formats that may hold more
  // than we read.
  void refuse_unknown_keys();

 private:
  const nlohmann::json* member(const std::string& key, const char* expected);
  std::string pointer_to(const std::string& key) const;

  const nlohmann::json* value_;
  std::string pointer_;
  ProblemList* problems_;
  std::vector<std::string> known_;
};

// Short text of a JSON value for an error message: at most 60 characters.
std::string shown(const nlohmann::json& value);

}  // namespace shardwright
