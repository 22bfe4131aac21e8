#include "sim/step/shared_device.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

namespace shardwright::sim {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::map<std::uint32_t, double> finishes(SharedDevice& device) {
  std::map<std::uint32_t, double> finish;
  for (const SharedDevice::Ended& each : device.ended()) finish[each.op] = each.finish;
  return finish;
}

SharedDevice::Collective collective(std::uint32_t op, double ready, double duration,
                                    PortShare port = {}) {
  return {.op = op, .start = {ready}, .duration = duration, .port = port};
}

// A collective from 1 s at s = 1/2: a kernel of 2 s from 0 s has done 1 s when it begins and needs
// 1.5 s for the rest.
TEST(SharedDevice, ACollectiveStretchesTheKernelBesideIt) {
  SharedDevice device({.kernels = 0.5});
  device.queue(Stream::GradientReduce, collective(0, 1.0, 2.0));
  EXPECT_DOUBLE_EQ(device.run_kernel(0.0, 2.0), 2.5);
  // It ends at 3 s; 1/3 s of a kernel of 1 s is done by then.
  EXPECT_DOUBLE_EQ(device.run_kernel(2.5, 1.0), 3.0 + 2.0 / 3.0);
  EXPECT_DOUBLE_EQ(device.run_kernel(4.0, 1.0), 5.0);
  EXPECT_EQ(finishes(device).at(0), 3.0);
}

// A collective of 2 s from 0 s at c = 1/2 beside a kernel of 1.5 s has done 1 s when that ends.
TEST(SharedDevice, AKernelStretchesTheCollectiveBesideIt) {
  SharedDevice device({.collectives = 0.5});
  device.queue(Stream::GradientReduce, collective(0, 0.0, 2.0));
  EXPECT_DOUBLE_EQ(device.run_kernel(0.0, 1.5), 1.5);
  device.settle(0);
  EXPECT_DOUBLE_EQ(finishes(device).at(0), 2.5);
  EXPECT_DOUBLE_EQ(device.ended().front().delay, 0.5);
}

// Two that fill the port get half of it each. One that fills a quarter keeps that, and the other
// one has the rest.
TEST(SharedDevice, CollectivesShareThePortMaxMinFairly) {
  SharedDevice halves({});
  halves.queue(Stream::GradientReduce, collective(0, 0.0, 4.0, {1.0F}));
  halves.queue(Stream::TensorParallel, collective(1, 1.0, 1.0, {1.0F}));
  halves.settle_all();
  EXPECT_DOUBLE_EQ(finishes(halves).at(1), 3.0);
  EXPECT_DOUBLE_EQ(finishes(halves).at(0), 5.0);

  SharedDevice uneven({});
  uneven.queue(Stream::GradientReduce, collective(0, 0.0, 10.0, {0.25F}));
  uneven.queue(Stream::TensorParallel, collective(1, 0.0, 3.0, {1.0F}));
  uneven.settle_all();
  EXPECT_DOUBLE_EQ(finishes(uneven).at(1), 4.0);
  EXPECT_DOUBLE_EQ(finishes(uneven).at(0), 10.0);
}

// The rate of the first of these, all of which begin at once, as a share of its rate alone.
double rate_of_first(const std::vector<PortShare>& ports) {
  const std::array streams = {Stream::TensorParallel, Stream::GradientReduce,
                              Stream::ParameterGather, Stream::ExpertParallel};
  SharedDevice device({});
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const double duration = i == 0 ? 1.0 : 1e6;
    device.queue(streams[i], collective(static_cast<std::uint32_t>(i), 0.0, duration, ports[i]));
  }
  device.settle(0);
  return 1.0 / finishes(device).at(0);
}

// No port carries more than it can, and what slows a collective down is a full port of which no
// other one has more.
RC_GTEST_PROP(SharedDevice, BothPortsAreSharedMaxMinFairly, ()) {
  constexpr double kNear = 1e-3;  // the levels of two ports that limit each other are iterated
  const std::vector<float PortShare::*> kinds = {&PortShare::scale_up, &PortShare::nic};
  std::vector<PortShare> ports(*rc::gen::inRange<std::size_t>(1, 5));
  for (PortShare& port : ports) {
    for (float PortShare::*kind : kinds)
      port.*kind = static_cast<float>(*rc::gen::inRange(0, 11)) / 10.0F;
  }
  std::vector<double> rates;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    rates.push_back(rate_of_first(ports));
    std::rotate(ports.begin(), ports.begin() + 1, ports.end());
  }
  std::vector<bool> explained;
  for (const double rate : rates) explained.push_back(rate > 1.0 - kNear);
  for (float PortShare::*kind : kinds) {
    double used = 0.0, most = 0.0;
    for (std::size_t i = 0; i < ports.size(); ++i) {
      used += rates[i] * ports[i].*kind;
      most = std::max(most, rates[i] * ports[i].*kind);
    }
    RC_ASSERT(used < 1.0 + kNear);
    for (std::size_t i = 0; i < ports.size(); ++i)
      explained[i] =
          explained[i] || (used > 1.0 - kNear && rates[i] * ports[i].*kind > most - kNear);
  }
  RC_ASSERT(std::ranges::all_of(explained, [](bool each) { return each; }));
}

// Settling what a kernel waits for does not keep collectives that are issued later from sharing
// with those that were issued before.
TEST(SharedDevice, WhatIsIssuedLaterSharesWithWhatIsNotSettled) {
  SharedDevice device({});
  device.queue(Stream::GradientReduce, collective(0, 0.0, 4.0, {1.0F}));
  device.queue(Stream::GradientReduce, collective(1, 0.0, 4.0, {1.0F}));
  device.queue(Stream::TensorParallel, collective(2, 0.0, 1.0, {1.0F}));
  device.settle(2);
  EXPECT_DOUBLE_EQ(finishes(device).at(2), 2.0);
  device.run_kernel(2.0, 1.0);
  device.queue(Stream::TensorParallel, collective(3, 3.0, 1.0, {1.0F}));
  device.settle_all();
  EXPECT_DOUBLE_EQ(finishes(device).at(3), 5.0);
  EXPECT_DOUBLE_EQ(finishes(device).at(0), 6.0);
  EXPECT_DOUBLE_EQ(finishes(device).at(1), 10.0);
}

TEST(SharedDevice, ACollectiveBeginsWhenTheOneItWaitsForHasEnded) {
  SharedDevice device({.kernels = 1.0, .collectives = 1.0});
  device.queue(Stream::ParameterGather, collective(0, 0.0, 1.0));
  SharedDevice::Collective second = collective(1, 0.0, 1.0);
  second.after = 0;
  device.queue(Stream::GradientReduce, second);
  EXPECT_DOUBLE_EQ(device.run_kernel(0.0, 3.0), 5.0);  // 4 s beside the two
  EXPECT_DOUBLE_EQ(finishes(device).at(0), 2.0);
  EXPECT_DOUBLE_EQ(finishes(device).at(1), 4.0);
}

// A collective that began in the settled past has gone on alone since.
TEST(SharedDevice, ThePastIsNotChanged) {
  SharedDevice device({.kernels = 0.5, .collectives = 0.5});
  EXPECT_DOUBLE_EQ(device.run_kernel(0.0, 4.0), 4.0);
  device.queue(Stream::ParameterGather, collective(0, 1.0, 2.0));
  EXPECT_DOUBLE_EQ(finishes(device).at(0), 3.0);
  device.queue(Stream::ParameterGather, collective(1, 1.0, 2.0));
  EXPECT_DOUBLE_EQ(device.run_kernel(4.0, 0.5), 4.75);
  device.settle_all();
  EXPECT_DOUBLE_EQ(finishes(device).at(1), 5.25);
}

// The same rules in the plainest way: everything is known from the start, and the fair level of
// one port is found by bisection.
struct Job {
  std::size_t stream;
  double ready, left, port;
  bool kernel;
  double finish = kNever;
};

double fair_level(const std::vector<double>& wanted) {
  double low = 0.0, high = 1.0;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2.0;
    double used = 0.0;
    for (const double each : wanted) used += std::min(each, middle);
    (used <= 1.0 ? low : high) = middle;
  }
  return low;
}

void run_together(std::vector<Job>& jobs, const Contention& contention) {
  double now = 0.0;
  while (true) {
    std::vector<std::size_t> running;
    std::map<std::size_t, bool> taken;
    bool kernel = false, beside = false;
    double next = kNever;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (jobs[i].finish != kNever || std::exchange(taken[jobs[i].stream], true)) continue;
      if (jobs[i].ready > now) {
        next = std::min(next, jobs[i].ready);
        continue;
      }
      running.push_back(i);
      (jobs[i].kernel ? kernel : beside) = true;
    }
    if (running.empty() && next == kNever) return;
    const double alone = kernel ? 1.0 / (1.0 + contention.collectives) : 1.0;
    std::vector<double> wanted;
    for (const std::size_t i : running)
      if (!jobs[i].kernel) wanted.push_back(alone * jobs[i].port);
    const double level = fair_level(wanted);
    const auto rate = [&](const Job& job) {
      if (job.kernel) return beside ? 1.0 / (1.0 + contention.kernels) : 1.0;
      return job.port == 0.0 ? alone : std::min(alone, level / job.port);
    };
    for (const std::size_t i : running) next = std::min(next, now + jobs[i].left / rate(jobs[i]));
    for (const std::size_t i : running) {
      jobs[i].left -= (next - now) * rate(jobs[i]);
      if (jobs[i].left <= 1e-12) jobs[i].finish = next;
    }
    now = next;
  }
}

RC_GTEST_PROP(SharedDevice, AgreesWithSimulatingAllAtOnce, ()) {
  const Contention contention{*rc::gen::element(0.0, 0.1, 1.0), *rc::gen::element(0.0, 0.2, 1.0)};
  const bool shares_nic = *rc::gen::arbitrary<bool>();
  std::vector<Job> jobs;
  SharedDevice device(contention);
  const std::array streams = {Stream::TensorParallel, Stream::GradientReduce,
                              Stream::ParameterGather};
  for (const Stream stream : streams) {
    for (int i = *rc::gen::inRange(0, 5); i > 0; --i) {
      Job job{static_cast<std::size_t>(stream), *rc::gen::inRange(0, 20) / 2.0,
              *rc::gen::inRange(1, 8) / 2.0, *rc::gen::inRange(0, 9) / 8.0, false};
      const auto filled = static_cast<float>(job.port);
      device.queue(stream, collective(static_cast<std::uint32_t>(jobs.size()), job.ready, job.left,
                                      shares_nic ? PortShare{0.0F, filled} : PortShare{filled}));
      jobs.push_back(job);
    }
  }
  const std::size_t collectives = jobs.size();
  std::vector<double> kernel_finish;
  double free = 0.0;
  for (int i = *rc::gen::inRange(0, 6); i > 0; --i) {
    Job job{0, free + *rc::gen::inRange(0, 4) / 2.0, *rc::gen::inRange(1, 8) / 2.0, 0.0, true};
    free = device.run_kernel(job.ready, job.left);
    kernel_finish.push_back(free);
    jobs.push_back(job);
  }
  device.settle_all();
  run_together(jobs, contention);
  const auto finish = finishes(device);
  RC_ASSERT(finish.size() == collectives);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const double mine =
        i < collectives ? finish.at(static_cast<std::uint32_t>(i)) : kernel_finish[i - collectives];
    RC_ASSERT(std::abs(mine - jobs[i].finish) < 1e-6);
  }
}

}  // namespace
}  // namespace shardwright::sim
