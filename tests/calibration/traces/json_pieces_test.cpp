// Pieces of a JSON text are those that a whole parse finds, wherever the reads of the file end.
#include "calibration/traces/json_pieces.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "tests/thrown.hpp"

namespace shardwright::calibration {
namespace {

using nlohmann::ordered_json;

ByteSource source_of(const std::string& text, std::size_t longest_read) {
  return [&text, longest_read, at = std::size_t{0}](char* to, std::size_t most) mutable {
    const std::size_t count = std::min({most, longest_read, text.size() - at});
    std::memcpy(to, text.data() + at, count);
    at += count;
    return count;
  };
}

// What the pieces add up to; null without the array.
ordered_json put_together(const std::string& text, std::size_t longest_read) {
  ordered_json members = ordered_json::object(), events = ordered_json::array();
  JsonPieces pieces;
  pieces.array = "events";
  pieces.element = [&](std::string_view element, std::size_t index) {
    EXPECT_EQ(index, events.size());
    events.push_back(ordered_json::parse(element));
  };
  pieces.member = [&](std::string_view key, std::string_view value) {
    members[std::string(key)] = ordered_json::parse(value);
  };
  if (!read_json_pieces(source_of(text, longest_read), "text", pieces)) return nullptr;
  members["events"] = events;
  return members;
}

rc::Gen<ordered_json> any_value(int depth) {
  const auto text = rc::gen::map(rc::gen::string<std::string>(), [](std::string bytes) {
    for (char& c : bytes) c = "\"\\{}[],: \nab/"[static_cast<unsigned char>(c) % 13];
    return ordered_json(bytes);
  });
  const auto number =
      rc::gen::map(rc::gen::arbitrary<int>(), [](int value) { return ordered_json(value / 8.0); });
  if (depth == 0)
    return rc::gen::oneOf(text, number, rc::gen::element<ordered_json>(true, nullptr));
  return rc::gen::oneOf(
      text, number,
      rc::gen::map(rc::gen::container<std::vector<ordered_json>>(any_value(depth - 1)),
                   [](const std::vector<ordered_json>& values) { return ordered_json(values); }),
      rc::gen::map(rc::gen::container<std::vector<ordered_json>>(any_value(depth - 1)),
                   [](const std::vector<ordered_json>& values) {
                     ordered_json object = ordered_json::object();
                     for (std::size_t i = 0; i < values.size(); ++i)
                       object["k}\"" + std::to_string(i)] = values[i];
                     return object;
                   }));
}

RC_GTEST_PROP(JsonPieces, AreThoseOfTheWholeDocument, ()) {
  ordered_json document = {
      {"first", *any_value(2)}, {"events", ordered_json::array()}, {"last", *any_value(1)}};
  for (int i = *rc::gen::inRange(0, 6); i > 0; --i) document["events"].push_back(*any_value(2));
  const std::string text = document.dump(*rc::gen::element(-1, 1));
  const ordered_json found = put_together(text, *rc::gen::inRange<std::size_t>(1, 40));
  // The array comes last there.
  RC_ASSERT(nlohmann::json(found) == nlohmann::json(document));
}

TEST(JsonPieces, ReadAnArrayThatIsOutermost) {
  EXPECT_EQ(put_together(" [1, {\"a\": [2]}] ", 3)["events"],
            ordered_json::parse("[1, {\"a\": [2]}]"));
}

TEST(JsonPieces, SayThatTheArrayIsNotThere) {
  EXPECT_TRUE(put_together("{\"event\": [1]}", 100).is_null());
}

TEST(JsonPieces, RefuseWhatIsNoJsonWithTheByte) {
  const auto refusal = [](const std::string& text) {
    return thrown_by([&] { put_together(text, 7); });
  };
  for (const char* text : {"", "  ", "hello", "{\"events\": [1", "{\"events\": [1, 2}",
                           "{\"events\" [1]}", "{\"a\": \"b", "{\"a\": \"b\\",
                           "{\"events\": [1]} x", "{\"a\" 1}", "{,}", "[,]", "{\"a\":}"})
    EXPECT_NE(refusal(text).find("byte "), std::string::npos) << text << ": " << refusal(text);
  EXPECT_NE(refusal("{\"events\": [{}, {\"a\": 1").find("event 1, byte"), std::string::npos);
}

}  // namespace
}  // namespace shardwright::calibration
