// Strict reading of JSON by simdjson, for the readers of the usual form alone: this header is
// heavy. The first thing that they do not expect ends the reading.
#pragma once

#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "core/base/enum_names.hpp"
#include "core/base/units.hpp"
#include "core/timeline/usual_form.hpp"

namespace shardwright::usual {

namespace od = simdjson::ondemand;
static_assert(simdjson::SIMDJSON_PADDING <= kTextPadding);

// Rows between two looks at the watch.
inline constexpr std::size_t kWatchedRows = 4096;
inline constexpr std::int64_t kMostIndex = 2'000'000'000;

// Thrown for whatever the strict readers would have to judge.
struct Unusual {};

inline void expect(bool holds) {
  if (!holds) throw Unusual{};
}

using Keys = std::span<const std::string_view>;

// The members of an object that were there, by their places among its keys.
class Members {
 public:
  void add(std::size_t place) {
    expect(!has(place));
    seen_ |= 1U << place;
  }
  bool has(std::size_t place) const { return (seen_ >> place & 1U) != 0; }
  bool has_first(std::size_t count) const {
    const std::uint32_t wanted = (1U << count) - 1;
    return (seen_ & wanted) == wanted;
  }

 private:
  std::uint32_t seen_ = 0;
};

// Calls `take` with the place and the value of each member, of which none may come twice.
template <class Take>
Members for_members(od::object object, Keys keys, const Take& take) {
  Members members;
  for (auto each : object) {
    const std::string_view key = each.unescaped_key();
    const auto place = static_cast<std::size_t>(std::ranges::find(keys, key) - keys.begin());
    expect(place < keys.size());
    members.add(place);
    take(place, od::value(each.value()));
  }
  return members;
}

inline std::int64_t integer_in(od::value value, std::int64_t least, std::int64_t most) {
  const std::int64_t number = value.get_int64();
  expect(number >= least && number <= most);
  return number;
}

inline std::int32_t index_in(od::value value, std::int64_t least = 0) {
  return static_cast<std::int32_t>(integer_in(value, least, kMostIndex));
}

inline double number_in(od::value value, double most) {
  const double number = value.get_double();
  expect(number >= 0.0 && number <= most);
  return number;
}

inline Seconds time_in(od::value value) {
  return Seconds(number_in(value, 1e9));
}
inline double amount_in(od::value value) {
  return number_in(value, 1e30);
}

inline std::string text_in(od::value value) {
  return std::string(std::string_view(value.get_string()));
}

template <NamedEnum E>
E choice_in(std::string_view name) {
  const auto names = names_of<E>();
  const auto found = std::ranges::find(names, name);
  expect(found != names.end());
  return static_cast<E>(found - names.begin());
}
template <NamedEnum E>
E choice_in(od::value value) {
  return choice_in<E>(std::string_view(value.get_string()));
}

// Parses one text and reports how far it has come.
class Text {
 public:
  Text(std::string_view text, const ReadingWatch& watch)
      : text_(text),
        watch_(watch),
        document_(parser_.iterate(
            simdjson::padded_string_view(text.data(), text.size(), text.size() + kTextPadding))) {}

  od::object object() { return document_.get_object(); }

  // Calls `take` with each object of an array.
  template <class Take>
  void for_rows(od::value array, const Take& take) {
    std::size_t rows = 0;
    for (auto each : array.get_array()) {
      take(od::object(each.get_object()));
      if (++rows % kWatchedRows == 0) report(document_.current_location());
    }
  }
  void end() {
    // Only at the end has the parser no place in the text.
    expect(document_.current_location().error() == simdjson::OUT_OF_BOUNDS);
    report(text_.data() + text_.size());
  }

 private:
  void report(const char* at) {
    if (watch_.stop.stop_requested()) throw ReadingStopped();
    const auto bytes = static_cast<std::size_t>(at - text_.data());
    if (watch_.advanced) watch_.advanced(bytes - reported_);
    reported_ = bytes;
  }

  std::string_view text_;
  const ReadingWatch& watch_;
  od::parser parser_;
  od::document document_;
  std::size_t reported_ = 0;
};

// The ranks that were named. Rows of one rank mostly follow each other.
class KnownRanks {
 public:
  // Returns false for one that was there.
  bool add(std::int32_t rank) { return ranks_.insert(rank).second; }
  bool contains(std::int32_t rank) {
    if (rank != last_ && !ranks_.contains(rank)) return false;
    last_ = rank;
    return true;
  }

 private:
  std::set<std::int32_t> ranks_;
  std::int32_t last_ = -1;
};

template <class Read>
std::optional<Timeline> if_usual(std::string_view text, const ReadingWatch& watch,
                                 const Read& read) {
  try {
    Text parsed(text, watch);
    return read(parsed);
  } catch (const Unusual&) {
  } catch (const simdjson::simdjson_error&) {
  }
  return std::nullopt;
}

}  // namespace shardwright::usual
