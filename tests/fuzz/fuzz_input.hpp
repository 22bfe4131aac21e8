// The requirements of every fuzz target on a parser: good input survives a round trip, bad input is
// an InputError, and nothing else happens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.hpp"
#include "core/base/json_reader.hpp"

namespace shardwright::fuzz {

inline constexpr const char* kSource = "fuzz";

// Hands the bytes to `check`; returns what libFuzzer expects. Any exception other than InputError
// ends the program, which libFuzzer reports.
template <class Check>
int try_text(const std::uint8_t* data, std::size_t size, Check check) {
  try {
    check(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const InputError&) {
    return 0;
  }
  return 0;
}

// Parses the bytes as JSON and hands them to `check`, as `try_text`.
template <class Check>
int try_document(const std::uint8_t* data, std::size_t size, Check check) {
  return try_text(data, size, [&](const std::string& text) { check(parse_json(text, kSource)); });
}

// A value that was accepted reads back equal from what is written.
template <class Value, class Read>
void check_round_trip(const Value& value, Read read) {
  const nlohmann::json written = nlohmann::json::parse(to_json(value).dump());
  try {
    SHARDWRIGHT_CHECK(read(written) == value, "the value changed on a round trip");
  } catch (const InputError& error) {
    SHARDWRIGHT_CHECK(false, error.what());
  }
}

}  // namespace shardwright::fuzz
