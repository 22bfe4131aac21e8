#include "core/base/quantity_text.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace shardwright {
namespace {

TEST(QuantityText, ChoosesTheUnit) {
  EXPECT_EQ(format_time(Seconds(1.2345)), "1.23 s");
  EXPECT_EQ(format_time(Seconds(0.0456)), "45.6 ms");
  EXPECT_EQ(format_time(Seconds(7.89e-6)), "7.89 µs");
  EXPECT_EQ(format_time(Seconds(0.99996)), "1 s");
  EXPECT_EQ(format_time(Seconds(86400.0 * 3)), "3 d");
  EXPECT_EQ(format_bytes(gigabytes(80)), "80 GB");
  EXPECT_EQ(format_bandwidth(gigabytes_per_second(3350)), "3.35 TB/s");
  EXPECT_EQ(format_flop_rate(teraflops(989)), "989 TFLOP/s");
}

TEST(QuantityText, SetsThousandsApart) {
  EXPECT_EQ(format_count(1024), "1,024");
  EXPECT_EQ(format_count(-1234567), "-1,234,567");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_fixed(12345.678, 1), "12,345.7");
}

TEST(QuantityText, CountsParametersAsModelsAreNamed) {
  EXPECT_EQ(format_parameters(70'553'706'496), "70.6 B");
  EXPECT_EQ(format_parameters(999'885'952), "1.00 B");
  EXPECT_EQ(format_parameters(774'030'080), "774 M");
}

TEST(QuantityText, ShortensAxesAndChanges) {
  EXPECT_EQ(format_short(1500.0), "1.5 k");
  EXPECT_EQ(format_short(12.0), "12");
  EXPECT_EQ(format_percent(0.4567), "45.7");
  EXPECT_EQ(format_signed_percent(0.032), "+3.2");
  EXPECT_EQ(format_signed_percent(-0.005), "-0.5");
}

TEST(QuantityText, RangesNameTheirUnitOnce) {
  EXPECT_EQ(format_time_range(Seconds(15.3), Seconds(19.8)), "15.3 to 19.8 s");
  EXPECT_EQ(format_time_range(Seconds(0.9), Seconds(1.1)), "900 ms to 1.1 s");
}

TEST(QuantityText, MoreDigitsWhereTheyAreAskedFor) {
  EXPECT_EQ(format_time(Seconds(16.154), 4), "16.15 s");
  EXPECT_EQ(format_time(Seconds(3.456 * 3600.0), 4), "3.46 h");
}

TEST(QuantityText, CountsHaveTheirPlural) {
  EXPECT_EQ(format_plural(1, "plan"), "1 plan");
  EXPECT_EQ(format_plural(2048, "batch"), "2,048 batches");
}

// Keys of JSON name base units.
TEST(QuantityText, KeysGiveUpTheirUnit) {
  using Pair = std::pair<std::string, std::string>;
  EXPECT_EQ(with_unit("memory.bandwidth_bytes_per_s", 3.35e12),
            Pair("memory.bandwidth", "3.35 TB/s"));
  EXPECT_EQ(with_unit("step_s", 0.0456), Pair("step", "45.6 ms"));
  EXPECT_EQ(with_unit("tokens_per_s", 1234.5), Pair("tokens_per_s", "1,234.5"));
}

}  // namespace
}  // namespace shardwright
