#include "planner/tuning/trial_schedule.hpp"

#include <algorithm>
#include <set>

#include "sim/run/random_stream.hpp"

namespace shardwright::planner {

std::vector<ScheduledJob> run_study(Study& study, std::size_t workers, const JobTime& time,
                                    const JobHooks& hooks) {
  std::vector<ScheduledJob> done, running;
  std::set<std::size_t> idle;
  for (std::size_t worker = 0; worker < workers; ++worker) idle.insert(worker);
  Seconds now;
  while (true) {
    while (!idle.empty()) {
      const auto job = next_job(study);
      if (!job) break;
      const std::size_t worker = *idle.begin();
      idle.erase(idle.begin());
      begin(study, *job);
      running.push_back({*job, worker, now, now + time(*job)});
      hooks.start(*job, worker);
    }
    if (running.empty()) return done;
    // The first of equal ones.
    const auto first = std::ranges::min_element(running, {}, &ScheduledJob::end);
    first->loss = hooks.finish(first->job, first->worker);
    complete(study, first->job, first->loss);
    now = first->end;
    idle.insert(first->worker);
    done.push_back(std::move(*first));
    running.erase(first);
  }
}

StudyForecast forecast_study(StudyRules rules, std::size_t workers, const DrawnJobTime& time,
                             std::int64_t draws) {
  // What a process proposes from losses by chance is as good as random values.
  if (rules.search == TuningSearch::Bayes) rules.search = TuningSearch::Random;
  StudyForecast forecast;
  forecast.jobs.assign(rules.rungs.size(), 0.0);
  std::vector<double> walls, busy;
  for (std::int64_t draw = 0; draw < draws; ++draw) {
    Study study{rules, {}};
    const auto loss = [&](const TrialJob& job, std::size_t) {
      return sim::RandomStream(~rules.seed, job.trial, static_cast<std::uint64_t>(draw)).uniform();
    };
    const auto jobs =
        run_study(study, workers, [&](const TrialJob& job) { return time(job, draw); },
                  {[](const TrialJob&, std::size_t) {}, loss});
    walls.push_back(jobs.empty() ? 0.0 : jobs.back().end.value());
    busy.push_back(0.0);
    for (const ScheduledJob& each : jobs) {
      busy.back() += (each.end - each.start).value();
      forecast.jobs[each.job.rung] += 1.0;
    }
  }
  for (double& jobs : forecast.jobs) jobs /= static_cast<double>(draws);
  forecast.wall = sim::percentiles(std::move(walls));
  forecast.busy = Seconds(sim::percentiles(std::move(busy)).p50);
  return forecast;
}

}  // namespace shardwright::planner
