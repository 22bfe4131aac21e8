// Probes time ops on a machine that is interrupted now and then.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "calibration/part_calibration.hpp"

namespace shardwright::calibration {
namespace {

constexpr double kAlpha = 1e-3, kBeta = 1e7;

std::vector<ExchangeSample> undisturbed() {
  std::vector<ExchangeSample> samples;
  for (const OpKind kind : {OpKind::AllReduce, OpKind::Send}) {
    for (const std::int64_t stride : {1, 2}) {
      for (const double bytes : {64.0, 4096.0, 32768.0, 524288.0, 4194304.0}) {
        const double slower = kind == OpKind::Send ? 1.0 : 3.0 * static_cast<double>(stride);
        samples.push_back(
            {kind, 2, stride, Bytes(bytes), Seconds(kAlpha + slower * bytes / kBeta)});
      }
    }
  }
  return samples;
}

TEST(ProbeTimings, OfAnUndisturbedMachineStayAsTheyAre) {
  EXPECT_EQ(bounded_by_larger(undisturbed()), undisturbed());
}

// Interruptions only ever add; what is left of them is no more than before, and no smaller message
// takes longer than a larger one of its group.
TEST(ProbeTimings, InterruptionsOfSmallMessagesAreNoMoreThanALargerOneTakes) {
  std::mt19937 random(7);
  std::vector<ExchangeSample> disturbed = undisturbed();
  for (ExchangeSample& sample : disturbed)
    if (random() % 3 == 0) sample.time += Seconds(8e-3);
  std::shuffle(disturbed.begin(), disturbed.end(), random);
  const std::vector<ExchangeSample> bounded = bounded_by_larger(disturbed);
  ASSERT_EQ(bounded.size(), disturbed.size());
  for (std::size_t i = 0; i < bounded.size(); ++i) {
    EXPECT_LE(bounded[i].time, disturbed[i].time);
    const std::vector<ExchangeSample> all = undisturbed();
    for (const ExchangeSample& same : all) {
      if (same.kind == bounded[i].kind && same.stride == bounded[i].stride &&
          same.bytes == bounded[i].bytes) {
        EXPECT_GE(bounded[i].time, same.time);
      }
    }
    for (const ExchangeSample& other : bounded) {
      if (other.kind == bounded[i].kind && other.stride == bounded[i].stride &&
          other.bytes > bounded[i].bytes) {
        EXPECT_LE(bounded[i].time, other.time);
      }
    }
  }
}

}  // namespace
}  // namespace shardwright::calibration
