#include "validation/report_charts.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>
#include <vector>

namespace shardwright::validation {
namespace {

// A mark of the legend without its place: colour and outline.
std::string look_of(const std::string& tag) {
  static const std::regex kPoint(R"((-?[\d.]+),(-?[\d.]+))");
  static const std::regex kFill(R"re(fill="(#\w+)")re");
  std::smatch fill;
  std::regex_search(tag, fill, kFill);
  std::string look = fill[1];
  double first_y = 0.0;
  int count = 0;
  for (std::sregex_iterator point(tag.begin(), tag.end(), kPoint), end; point != end; ++point) {
    const double y = std::stod((*point)[2]);
    if (count++ == 0) first_y = y;
    look += ' ' + (*point)[1].str() + ' ' + std::to_string(static_cast<int>(10.0 * (y - first_y)));
  }
  return look;
}

TEST(ScatterChart, TwentyAcceleratorsLookDifferent) {
  constexpr int kAccelerators = 20;
  std::vector<RowComparison> rows(kAccelerators);
  std::vector<const RowComparison*> pointers;
  for (int i = 0; i < kAccelerators; ++i) {
    RowComparison& row = rows[static_cast<std::size_t>(i)];
    row.accelerator_profile = "gpu" + std::to_string(100 + i);
    row.predicted_time.gemm = Seconds(1.0);
    pointers.push_back(&row);
  }
  const std::string svg = scatter_chart(pointers);
  // Marks of rows hold a title, those of the legend do not.
  static const std::regex kMark(R"(<(?:circle|polygon)[^>]*></(?:circle|polygon)>)");
  std::set<std::string> looks;
  int marks = 0;
  for (std::sregex_iterator mark(svg.begin(), svg.end(), kMark), end; mark != end; ++mark, ++marks)
    looks.insert(look_of(mark->str()));
  EXPECT_EQ(marks, kAccelerators);
  EXPECT_EQ(looks.size(), static_cast<std::size_t>(kAccelerators));
}

}  // namespace
}  // namespace shardwright::validation
