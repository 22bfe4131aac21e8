#include "cli/output/table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace shardwright::cli {
namespace {

Table plans() {
  Table table({{"#", ColumnKind::Number},
               {"plan", ColumnKind::Prose},
               {"step", ColumnKind::Number, "s"},
               {"memory", ColumnKind::Number, "GB"}});
  table.add_row({"1", "dp 8 tp 4 with a long story about it", "1.234", "70.5"});
  table.add_row({"2", "dp 16", "12.345", "8.0"});
  return table;
}

TEST(Table, AlignsNumbersRightUnderTitleAndUnit) {
  Table table({{"name"}, {"size", ColumnKind::Number, "GB"}});
  table.add_row({"a", "5"});
  table.add_row({"long", "123.4"});
  EXPECT_EQ(table.text(0),
            "name   size\n"
            "         GB\n"
            "────  ─────\n"
            "a         5\n"
            "long  123.4\n");
}

TEST(Table, CountsCharactersAndNotBytes) {
  Table table({{"µs", ColumnKind::Number}, {"x"}});
  table.add_row({"1", "y"});
  EXPECT_EQ(table.text(0), "µs  x\n──  ─\n 1  y\n");
}

TEST(Table, NoLineIsWiderThanAskedForWhereColumnsCanGiveWay) {
  for (int width = 24; width < 70; ++width) {
    std::istringstream stream(plans().text(width));
    for (std::string line; std::getline(stream, line);)
      EXPECT_LE(display_width(line), width) << line;
  }
}

TEST(Table, WhatFitsExactlyStaysWhole) {
  Table table({{"a"}, {"b"}, {"c"}});
  table.add_row({"1234567890", "1234567890", "1234567890"});
  EXPECT_EQ(std::ranges::count(table.text(34), '\n'), 3);
  EXPECT_EQ(std::ranges::count(table.text(33), '\n'), 7);
}

TEST(Table, NarrowTablesGoOnBelowWithTheFirstColumnAgain) {
  const std::string text = plans().text(24);
  EXPECT_THAT(text, testing::HasSubstr("\n\n#"));
  for (const char* cell : {"1.234", "12.345", "70.5", "story"})
    EXPECT_THAT(text, testing::HasSubstr(cell));
}

TEST(Table, WordsThatAreTooLongAreCutBehindASign) {
  Table table({{"name", ColumnKind::Prose}, {"n", ColumnKind::Number}});
  table.add_row({"simumax-b200-deepseekv2-tp1-ep8", "1"});
  EXPECT_EQ(table.text(20),
            "name               n\n"
            "─────────────────  ─\n"
            "simumax-b200-      1\n"
            "deepseekv2-tp1-\n"
            "ep8\n");
}

TEST(Table, PartsUseTheRoomThatTheOthersLeave) {
  Table table({{"#", ColumnKind::Number},
               {"a number", ColumnKind::Number},
               {"another", ColumnKind::Number},
               {"plan", ColumnKind::Prose}});
  table.add_row({"1", "123456789", "123456789", "dp 8, tp 1, pp 1, zero 2"});
  EXPECT_THAT(table.text(30), testing::HasSubstr("dp 8, tp 1, pp 1, zero 2"));
}

TEST(Table, MarkdownEscapesBars) {
  Table table({{"a|b"}, {"n", ColumnKind::Number, "s"}});
  table.add_row({"x|y", "1"});
  EXPECT_EQ(table.markdown(), "| a\\|b | n (s) |\n| --- | ---: |\n| x\\|y | 1 |\n");
}

TEST(Wrapped, BreaksAtSpacesAndIndents) {
  EXPECT_EQ(wrapped("one two three", 7), "one two\nthree");
  EXPECT_EQ(wrapped("one two three", 7, 2), "one two\n  three");
  EXPECT_EQ(wrapped("unbreakable", 4), "unbreakable");
  EXPECT_EQ(wrapped("as it is", 0), "as it is");
}

}  // namespace
}  // namespace shardwright::cli
