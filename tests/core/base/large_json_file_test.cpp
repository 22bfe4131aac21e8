#include "core/base/large_json_file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/json_reader.hpp"
#include "tests/scratch_path.hpp"
#include "tests/thrown.hpp"

namespace shardwright {
namespace {

constexpr std::uintmax_t kMost = 1 << 30;

class LargeJsonFile : public testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(file_, std::ios::binary) << text; }

  const std::filesystem::path file_ = scratch_path("large.json");
};

// Numbers of several lengths, so that values lie across the places where the watch looks.
std::string long_list(int count) {
  std::string text = "[0";
  for (int i = 1; i < count; ++i) text += ", " + std::to_string(i * 37 % 100'003);
  return text + "]";
}

TEST_F(LargeJsonFile, IsReadAsAnyOtherWhoeverWatches) {
  for (const int count : {1, 40'000, 120'000}) {
    const std::string text = long_list(count);
    write(text);
    std::uintmax_t read = 0;
    std::size_t reports = 0;
    const ReadingWatch watch{[&](std::uintmax_t bytes) {
                               read += bytes;
                               ++reports;
                             },
                             {}};
    EXPECT_EQ(read_large_json_file(file_, kMost, watch), parse_json(text, "text"));
    EXPECT_EQ(read, text.size());
    EXPECT_EQ(reports, text.size() / (1 << 16) + 1);
  }
}

TEST_F(LargeJsonFile, IsLeftWhereItIsWantedNoMore) {
  write(long_list(120'000));
  std::stop_source source;
  std::uintmax_t read = 0;
  const ReadingWatch watch{[&](std::uintmax_t bytes) {
                             read += bytes;
                             source.request_stop();
                           },
                           source.get_token()};
  EXPECT_THROW(read_large_json_file(file_, kMost, watch), ReadingStopped);
  EXPECT_GT(read, 0U);
  EXPECT_LT(read, std::filesystem::file_size(file_));
  // A stop is also heard before anything of the file is parsed.
  EXPECT_THROW(read_large_json_file(file_, kMost, {{}, source.get_token()}), ReadingStopped);
}

TEST_F(LargeJsonFile, HasTheSameProblemsWhoeverWatches) {
  for (const std::string& text : {long_list(40'000) + "x", std::string("{\"a\": 1, \"a\": 2}"),
                                  std::string(), std::string("{")}) {
    write(text);
    const auto problem = [&](const ReadingWatch& watch) {
      return thrown_by([&] { read_large_json_file(file_, kMost, watch); });
    };
    EXPECT_NE(problem({}), "");
    EXPECT_EQ(problem({[](std::uintmax_t) {}, {}}), problem({}));
  }
}

}  // namespace
}  // namespace shardwright
