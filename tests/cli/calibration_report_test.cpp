#include "cli/output/calibration_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace shardwright::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

calibration::CalibratedFigure figure(const std::string& key, calibration::FitVerdict verdict) {
  calibration::CalibratedFigure figure;
  figure.pointer = "/node/scale_up/" + key;
  figure.about = "links of a node";
  figure.fit.verdict = verdict;
  return figure;
}

std::string page_of(const calibration::Calibration& calibration, bool before = true) {
  Page page{PageStyle()};
  add_calibration(page, calibration, before);
  return page.text();
}

TEST(CalibrationReport, HasNoTableOfFiguresWhereNoneIsDetermined) {
  calibration::Calibration calibration;
  calibration.figures = {figure("latency_s", calibration::FitVerdict::Undetermined)};
  EXPECT_THAT(page_of(calibration), Not(HasSubstr("95 % from")));
  EXPECT_THAT(page_of(calibration), HasSubstr("/node/scale_up/latency_s (links of a node)"));
  calibration.figures.push_back(figure("bandwidth_bytes_per_s", calibration::FitVerdict::Fitted));
  EXPECT_THAT(page_of(calibration), HasSubstr("95 % from"));
}

TEST(CalibrationReport, NamesWhatStaysWithoutACurve) {
  calibration::Calibration calibration;
  calibration.without_curve = {"all_reduce of 2 on 1 node"};
  EXPECT_THAT(page_of(calibration), HasSubstr("all_reduce of 2 on 1 node"));
  EXPECT_EQ(calibration_json(calibration).at("without_curve").at(0), "all_reduce of 2 on 1 node");
}

TEST(CalibrationReport, WarnsOfOpsThatArePredictedWorse) {
  calibration::Calibration calibration;
  calibration::OpErrors worse{"all_reduce", Seconds(0), {}, {}}, better{"gemm", Seconds(0), {}, {}};
  worse.before.median_abs = better.after.median_abs = 0.392;
  worse.after.median_abs = better.before.median_abs = 0.457;
  calibration.ops = {worse, better};
  EXPECT_THAT(page_of(calibration), HasSubstr("all_reduce is predicted worse than before (median "
                                              "error 45.7 % instead of 39.2 %)"));
  EXPECT_THAT(page_of(calibration), Not(HasSubstr("gemm is predicted worse")));
  // A probe begins with a profile that knows nothing.
  EXPECT_THAT(page_of(calibration, false), Not(HasSubstr("worse")));
}

}  // namespace
}  // namespace shardwright::cli
