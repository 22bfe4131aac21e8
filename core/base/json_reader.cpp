#include "core/base/json_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/large_json_file.hpp"
#include "core/base/nearest_name.hpp"

namespace shardwright {
namespace {

using nlohmann::json;

constexpr std::uintmax_t kMaxFileBytes = 64ULL << 20;
constexpr int kMaxDepth = 100;

[[noreturn]] void refuse(const std::string& source, std::string where, std::string found,
                         std::string expected) {
  throw InputError(source, {{std::move(where), std::move(found), std::move(expected)}});
}

// Stops the parser at the first value that nests too deep, before recursion can overflow the stack,
// and at a key that an object holds twice (the parser would keep the last one without a word).
class StructureGuard {
 public:
  explicit StructureGuard(const std::string& source) : source_(source) {}

  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMaxDepth) {
      refuse(source_, "", fmt::format("values nested deeper than {} levels", kMaxDepth),
             fmt::format("at most {} levels", kMaxDepth));
    }
    using Event = json::parse_event_t;
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key) check_unique(parsed.get_ref<const std::string&>());
    return true;
  }

 private:
  void check_unique(const std::string& key) {
    auto& seen = keys_.back();
    const auto place = std::ranges::lower_bound(seen, key);
    if (place != seen.end() && *place == key) {
      refuse(source_, "", fmt::format("the key \"{}\" twice in one object", key), "each key once");
    }
    seen.insert(place, key);
  }

  const std::string& source_;
  std::vector<std::vector<std::string>> keys_;
};

// Bytes between two looks at the watch.
constexpr std::size_t kWatchedBytes = 1 << 16;

// The characters of a text, which reports to a watch how far they were read.
class WatchedCharacters {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  WatchedCharacters(const char* begin, const char* at, const ReadingWatch& watch)
      : begin_(begin), at_(at), watch_(&watch) {}

  const char& operator*() const { return *at_; }
  WatchedCharacters& operator++() {
    ++at_;
    if (static_cast<std::size_t>(at_ - begin_) % kWatchedBytes == 0) report(*watch_, kWatchedBytes);
    return *this;
  }
  bool operator==(const WatchedCharacters& other) const { return at_ == other.at_; }

  static void report(const ReadingWatch& watch, std::size_t bytes) {
    if (watch.stop.stop_requested()) throw ReadingStopped();
    if (watch.advanced) watch.advanced(bytes);
  }

 private:
  const char *begin_, *at_;
  const ReadingWatch* watch_;
};

// "a syntax error at line 2, column 1 (unexpected end of input)" for a message of nlohmann's, which
// is "[json.exception.parse_error.101] parse error at line 2, column 1: syntax error while parsing
// object key - unexpected end of input; expected string literal".
std::string syntax_error_text(const std::string& message) {
  const auto between = [&](const std::string& begin, const std::string& end) {
    const auto from = message.find(begin);
    if (from == std::string::npos) return std::string();
    const auto start = from + begin.size();
    return message.substr(start, message.find(end, start) - start);
  };
  const std::string place = between(" at ", ": "), reason = between(" - ", "; expected");
  std::string text = "a syntax error";
  if (!place.empty()) text += " at " + place;
  return reason.empty() ? text : fmt::format("{} ({})", text, reason);
}

std::string escaped(const std::string& key) {
  std::string result;
  for (const char c : key) {
    if (c == '~') {
      result += "~0";
    } else if (c == '/') {
      result += "~1";
    } else {
      result += c;
    }
  }
  return result;
}

// No figure of a machine or a program is smaller than this, but for zero; times that rest on
// smaller ones would leave the range of numbers.
constexpr double kSmallestFigure = 1e-20;

std::string range_text(IntegerRange range) {
  if (range.least == range.most) return std::to_string(range.least);
  return fmt::format("an integer from {} to {}", range.least, range.most);
}

std::string range_text(NumberRange range) {
  if (range.above_zero && range.least <= 0.0)
    return fmt::format("a number above 0 (from {}) and at most {}", kSmallestFigure, range.most);
  return fmt::format("a number from {} to {}", range.least, range.most);
}

bool inside(double value, NumberRange range) {
  if (!std::isfinite(value) || (range.above_zero && value < kSmallestFigure)) return false;
  return value >= range.least && value <= range.most;
}

// An integer may be written as 8 or as 8.0 or 4e6, never as 8.5.
std::optional<std::int64_t> as_integer(const json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::abs(number) < 9e15 && number == std::floor(number))
      return static_cast<std::int64_t>(number);
  }
  return std::nullopt;
}

// Stands for an object that is not there: whatever it should hold is one problem, already reported.
const json& absent_object() {
  static const json kAbsent = json::object();
  return kAbsent;
}

// Returns a value in the range that stands for one that was refused, so that reading can go on to
// find further problems.
std::int64_t stand_in(IntegerRange range) {
  return std::max<std::int64_t>(range.least, std::min<std::int64_t>(1, range.most));
}
double stand_in(NumberRange range) {
  return std::clamp(1.0, range.least, range.most);
}

}  // namespace

namespace {

template <class Iterator>
json parse_guarded(std::string_view text, Iterator begin, Iterator end, const std::string& source) {
  if (text.empty()) refuse(source, "", "an empty file", "JSON");
  if (text.find('\0') != std::string_view::npos) refuse(source, "", "binary data", "JSON text");
  try {
    return json::parse(begin, end, StructureGuard(source));
  } catch (const json::exception& error) {
    refuse(source, "", syntax_error_text(error.what()), "well-formed JSON in UTF-8");
  }
}

}  // namespace

json parse_json(std::string_view text, const std::string& source) {
  return parse_guarded(text, text.begin(), text.end(), source);
}

json read_json_file(const std::filesystem::path& file) {
  return read_large_json_file(file, kMaxFileBytes);
}

json read_large_json_file(const std::filesystem::path& file, std::uintmax_t most_bytes,
                          const ReadingWatch& watch) {
  const std::string source = file.string();
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) refuse(source, "", "no such file", "a JSON file");
  if (std::filesystem::is_directory(status)) refuse(source, "", "a folder", "a JSON file");
  if (std::filesystem::is_regular_file(status)) {
    const auto size = std::filesystem::file_size(file, error);
    if (!error && size > most_bytes) {
      refuse(source, "", fmt::format("a file of {} bytes", size),
             fmt::format("at most {} bytes", most_bytes));
    }
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) refuse(source, "", "a file that cannot be opened", "a readable JSON file");
  // Pipes have no size to ask for beforehand, so the limit holds while reading too.
  std::string text;
  std::vector<char> buffer(1 << 16);
  while (stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) ||
         stream.gcount() > 0) {
    if (watch.stop.stop_requested()) throw ReadingStopped();
    text.append(buffer.data(), static_cast<std::size_t>(stream.gcount()));
    if (text.size() > most_bytes) {
      refuse(source, "", fmt::format("more than {} bytes", most_bytes), "a smaller file");
    }
  }
  // Parsing takes the time, so the watch sees it.
  const char *begin = text.data(), *end = begin + text.size();
  json document = parse_guarded(text, WatchedCharacters(begin, begin, watch),
                                WatchedCharacters(begin, end, watch), source);
  WatchedCharacters::report(watch, text.size() % kWatchedBytes);
  return document;
}

std::string argument_source(const std::string& file_or_dash) {
  return file_or_dash == "-" ? "stdin" : file_or_dash;
}

json read_json_argument(const std::string& file_or_dash) {
  return read_json_file(file_or_dash == "-" ? std::filesystem::path("/dev/stdin")
                                            : std::filesystem::path(file_or_dash));
}

std::string shown(const json& value) {
  constexpr std::size_t kLimit = 60;
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kLimit) text = text.substr(0, kLimit - 3) + "...";
  return text;
}

ObjectReader::ObjectReader(const json& value, std::string pointer, ProblemList& problems)
    : value_(&value), pointer_(std::move(pointer)), problems_(&problems) {
  if (!value.is_object()) {
    problems_->add(pointer_, shown(value), "an object");
    value_ = &absent_object();
  }
}

std::string ObjectReader::pointer_to(const std::string& key) const {
  return key.empty() ? pointer_ : pointer_ + "/" + escaped(key);
}

void ObjectReader::problem(const std::string& key, std::string found, Expected expected) {
  if (value_ == &absent_object()) return;
  problems_->add(pointer_to(key), std::move(found), std::move(expected));
}

void ObjectReader::problem_with(const std::string& key, Expected expected) {
  const auto value = value_->find(key);
  problem(key, value == value_->end() ? "no such key" : shown(*value), std::move(expected));
}

bool ObjectReader::peek(const std::string& key) const {
  const auto found = value_->find(key);
  return found != value_->end() && !found->is_null();
}

bool ObjectReader::has(const std::string& key) {
  known_.push_back(key);
  return peek(key);
}

const json* ObjectReader::member(const std::string& key, const char* expected) {
  if (has(key)) return &value_->at(key);
  problem_with(key, expected);
  return nullptr;
}

const json& ObjectReader::raw(const std::string& key) {
  static const json kNull;
  return has(key) ? value_->at(key) : kNull;
}

std::int64_t ObjectReader::integer(const std::string& key, IntegerRange range) {
  const json* value = member(key, "an integer");
  if (value == nullptr) return stand_in(range);
  const auto number = as_integer(*value);
  if (number && *number >= range.least && *number <= range.most) return *number;
  problem(key, shown(*value), range_text(range));
  return stand_in(range);
}

double ObjectReader::number(const std::string& key, NumberRange range) {
  const json* value = member(key, "a number");
  if (value == nullptr) return stand_in(range);
  if (value->is_number() && inside(value->get<double>(), range)) return value->get<double>();
  problem(key, shown(*value), range_text(range));
  return stand_in(range);
}

bool ObjectReader::boolean(const std::string& key) {
  const json* value = member(key, "true or false");
  if (value == nullptr) return false;
  if (value->is_boolean()) return value->get<bool>();
  problem(key, shown(*value), "true or false");
  return false;
}

std::string ObjectReader::text(const std::string& key) {
  const json* value = member(key, "a text");
  if (value == nullptr) return {};
  if (value->is_string()) return value->get<std::string>();
  problem(key, shown(*value), "a text");
  return {};
}

std::string ObjectReader::name(const std::string& key) {
  const json* value = member(key, "a text that is not empty");
  if (value == nullptr) return {};
  if (value->is_string() && !value->get_ref<const std::string&>().empty())
    return value->get<std::string>();
  problem(key, shown(*value), "a text that is not empty");
  return {};
}

std::vector<std::int64_t> ObjectReader::integers(const std::string& key, IntegerRange range) {
  const json* value = member(key, "an array of integers");
  std::vector<std::int64_t> result;
  if (value == nullptr) return result;
  if (!value->is_array()) problem(key, shown(*value), "an array of integers");
  if (!value->is_array()) return result;
  for (std::size_t i = 0; i < value->size(); ++i) {
    const auto number = as_integer((*value)[i]);
    if (number && *number >= range.least && *number <= range.most) {
      result.push_back(*number);
    } else {
      problems_->add(fmt::format("{}/{}", pointer_to(key), i), shown((*value)[i]),
                     range_text(range));
    }
  }
  return result;
}

std::vector<double> ObjectReader::numbers(const std::string& key, NumberRange range) {
  const json* value = member(key, "an array of numbers");
  std::vector<double> result;
  if (value == nullptr) return result;
  if (!value->is_array()) problem(key, shown(*value), "an array of numbers");
  if (!value->is_array()) return result;
  for (std::size_t i = 0; i < value->size(); ++i) {
    const json& element = (*value)[i];
    if (element.is_number() && inside(element.get<double>(), range)) {
      result.push_back(element.get<double>());
    } else {
      problems_->add(fmt::format("{}/{}", pointer_to(key), i), shown(element), range_text(range));
    }
  }
  return result;
}

std::vector<std::string> ObjectReader::texts(const std::string& key) {
  const json* value = member(key, "an array of texts");
  std::vector<std::string> result;
  if (value == nullptr) return result;
  if (!value->is_array()) problem(key, shown(*value), "an array of texts");
  if (!value->is_array()) return result;
  for (std::size_t i = 0; i < value->size(); ++i) {
    const json& element = (*value)[i];
    if (element.is_string()) {
      result.push_back(element.get<std::string>());
    } else {
      problems_->add(fmt::format("{}/{}", pointer_to(key), i), shown(element), "a text");
    }
  }
  return result;
}

ObjectReader ObjectReader::object(const std::string& key) {
  const json* value = member(key, "an object");
  return {value == nullptr ? absent_object() : *value, pointer_to(key), *problems_};
}

std::vector<ObjectReader> ObjectReader::objects(const std::string& key) {
  const json* value = member(key, "an array of objects");
  std::vector<ObjectReader> result;
  if (value == nullptr) return result;
  if (!value->is_array()) problem(key, shown(*value), "an array of objects");
  if (!value->is_array()) return result;
  for (std::size_t i = 0; i < value->size(); ++i) {
    result.emplace_back((*value)[i], fmt::format("{}/{}", pointer_to(key), i), *problems_);
  }
  return result;
}

std::int64_t ObjectReader::integer_or(const std::string& key, std::int64_t fallback,
                                      IntegerRange range) {
  return has(key) ? integer(key, range) : fallback;
}

double ObjectReader::number_or(const std::string& key, double fallback, NumberRange range) {
  return has(key) ? number(key, range) : fallback;
}

bool ObjectReader::boolean_or(const std::string& key, bool fallback) {
  return has(key) ? boolean(key) : fallback;
}

std::string ObjectReader::text_or(const std::string& key, const std::string& fallback) {
  return has(key) ? text(key) : fallback;
}

std::optional<ObjectReader> ObjectReader::object_if(const std::string& key) {
  if (!has(key)) return std::nullopt;
  return object(key);
}

std::size_t ObjectReader::choose(const std::string& key, std::span<const char* const> names) {
  std::string text;
  if (has(key) && value_->at(key).is_string()) {
    text = value_->at(key).get_ref<const std::string&>();
    const auto found = std::ranges::find(names, text);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  }
  problem_with(key, one_of(text, names));
  return 0;
}

std::vector<std::size_t> ObjectReader::choose_all(const std::string& key,
                                                  std::span<const char* const> names) {
  std::vector<std::size_t> indices;
  const std::vector<std::string> given = texts(key);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto found = std::ranges::find(names, given[i]);
    if (found != names.end()) {
      indices.push_back(static_cast<std::size_t>(found - names.begin()));
    } else {
      problems_->add(fmt::format("{}/{}", pointer_to(key), i), fmt::format("\"{}\"", given[i]),
                     one_of(given[i], names));
    }
  }
  return indices;
}

std::vector<std::string> ObjectReader::keys() {
  std::vector<std::string> result;
  for (const auto& [key, value] : value_->items()) result.push_back(key);
  known_.insert(known_.end(), result.begin(), result.end());
  return result;
}

void ObjectReader::refuse_unknown_keys() {
  std::ranges::sort(known_);
  known_.erase(std::unique(known_.begin(), known_.end()), known_.end());
  for (const auto& [key, value] : value_->items()) {
    if (std::ranges::binary_search(known_, key)) continue;
    const Expected known = one_of(key, known_);
    problem(key, "an unknown key",
            known.nearest.empty() ? known : Expected("a known key", known.nearest));
  }
}

}  // namespace shardwright
