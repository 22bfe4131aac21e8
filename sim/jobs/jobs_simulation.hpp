// Jobs that share a network, at the full level (docs/models/jobs.md).
//
// Each training job makes its step again and again, storage traffic its bursts, on links that they
// share max-min fairly, until each training job has made so many steps beside all others and each
// storage traffic one burst. Each is also simulated alone, on the same nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "sim/jobs/job_set.hpp"

namespace shardwright::sim {

struct JobsOptions {
  // Hears the share that is done now and then.
  std::function<void(double)> progress;
  std::stop_token stop;
};

// The steps of a training job, or the bursts of storage traffic.
struct JobTimes {
  Seconds alone;
  // These are of the steps or bursts that run beside the other jobs.
  Seconds mean, longest;
  std::int64_t count = 0;

  double slowdown() const { return mean / alone; }
};

// What a job moves over a link, per second of the simulated time.
struct LinkShare {
  // Training jobs come before storage traffic, each in the order of the document.
  std::size_t job = 0;
  BytesPerSecond rate;
};

// A link that several jobs use.
struct SharedLink {
  std::string name;
  BytesPerSecond capacity;
  std::vector<LinkShare> shares;

  BytesPerSecond load() const;
};

struct JobsResult {
  // Training jobs before storage traffic.
  std::vector<JobTimes> jobs;
  // The fullest one first.
  std::vector<SharedLink> links;
  // Training jobs that have no reductions in switches, because other jobs hold them. Alone they do.
  std::vector<std::size_t> without_reductions;
  // The time that was simulated with all jobs.
  Seconds simulated;
  // True if it was stopped; the rest is then empty.
  bool cancelled = false;
};

JobsResult simulate_jobs(const JobSet& jobs, const JobsOptions& options = {});

}  // namespace shardwright::sim
