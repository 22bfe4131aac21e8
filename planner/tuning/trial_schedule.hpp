// The jobs of a study on workers, each of which runs one job at a time.
//
// Which job is next depends on the losses so far, and so on the order in which jobs end. That order
// is the one of a clock on which each job takes its predicted time, whatever it really takes, so
// that a study gives the same result on any machine, also if it is interrupted and continued.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/units.hpp"
#include "planner/tuning/study.hpp"
#include "sim/run/run_model.hpp"

namespace shardwright::planner {

struct JobHooks {
  // Begins a job on a worker, which has no other one.
  std::function<void(const TrialJob&, std::size_t worker)> start;
  // Waits for its end and returns its loss.
  std::function<double(const TrialJob&, std::size_t worker)> finish;
};

struct ScheduledJob {
  TrialJob job;
  std::size_t worker = 0;
  Seconds start, end;
  double loss = 0.0;
};

using JobTime = std::function<Seconds(const TrialJob&)>;

// Runs all jobs of the study, in the order of their ends; of jobs that end together, the one that
// began first. Passes on what the hooks throw.
std::vector<ScheduledJob> run_study(Study& study, std::size_t workers, const JobTime& time,
                                    const JobHooks& hooks);

// A study whose losses nobody knows yet: how long it takes, by many studies in which chance ranks
// the trials, each in the same place at all rungs.
struct StudyForecast {
  // Seconds until the last job ends; infinite where failures leave a job no progress.
  sim::Percentiles wall;
  // The time for which workers are busy, added up over them; the median.
  Seconds busy;
  // The mean number of jobs to each rung.
  std::vector<double> jobs;
};
// The time of a job in one of these studies, which may differ by the failures that it meets.
using DrawnJobTime = std::function<Seconds(const TrialJob&, std::int64_t draw)>;
StudyForecast forecast_study(StudyRules rules, std::size_t workers, const DrawnJobTime& time,
                             std::int64_t draws);

}  // namespace shardwright::planner
