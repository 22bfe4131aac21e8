#include "core/base/json_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "tests/thrown.hpp"

namespace shardwright {
namespace {

using nlohmann::json;

// Reads as a reader of nested objects with many members does.
void read_deeply(ObjectReader& root) {
  ObjectReader outer = root.object("outer");
  outer.integer("count");
  outer.number("rate_s");
  outer.text("name");
  outer.boolean("switch");
  outer.choose("kind", std::array{"one", "two"});
  outer.integers("sizes");
  ObjectReader inner = outer.object("inner");
  inner.integer("count");
  if (inner.text("name").empty()) inner.problem("name", "nothing", "a name");
  outer.objects("list");
  outer.refuse_unknown_keys();
  root.text("last");
}

std::vector<std::string> places(const json& document) {
  ProblemList problems("file");
  ObjectReader root(document, "", problems);
  read_deeply(root);
  return problems_of([&problems] { problems.throw_if_any(); });
}

TEST(ObjectReader, AMissingObjectIsOneProblem) {
  EXPECT_THAT(places({{"last", "x"}}), testing::ElementsAre("/outer"));
  EXPECT_THAT(places({{"outer", nullptr}, {"last", "x"}}), testing::ElementsAre("/outer"));
}

TEST(ObjectReader, AnObjectOfAnotherTypeIsOneProblem) {
  EXPECT_THAT(places({{"outer", 3}, {"last", "x"}}), testing::ElementsAre("/outer"));
  EXPECT_THAT(places(json::array({1, 2})), testing::ElementsAre(""));
}

TEST(ObjectReader, WhatIsMissingBesideAMissingObjectIsSaidToo) {
  EXPECT_THAT(places(json::object()), testing::ElementsAre("/outer", "/last"));
}

TEST(ObjectReader, AnEmptyObjectLacksEachMember) {
  EXPECT_THAT(places({{"outer", json::object()}, {"last", "x"}}),
              testing::ElementsAre("/outer/count", "/outer/rate_s", "/outer/name", "/outer/switch",
                                   "/outer/kind", "/outer/sizes", "/outer/inner", "/outer/list"));
}

}  // namespace
}  // namespace shardwright
