// Which job of a study comes next, against second implementations over random losses.
#include "planner/tuning/study.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "planner/tuning/gaussian_process.hpp"
#include "planner/tuning/trial_schedule.hpp"

namespace shardwright::planner {
namespace {

TunedParameter parameter_of(const std::string& text) {
  ProblemList problems("test");
  TunedParameter parameter = read_tuned_parameter("--vary", text, problems);
  problems.throw_if_any();
  return parameter;
}

StudyRules rules_of(TuningSearch search, std::int64_t trials, std::int64_t reduction) {
  StudyRules rules;
  rules.search = search;
  rules.parameters = {parameter_of("lr=1e-4..1e-2"), parameter_of("weight-decay=0,0.1,0.2")};
  rules.trials = trials;
  rules.reduction = reduction;
  rules.rungs = search == TuningSearch::Population
                    ? even_rungs(4)
                    : halving_rungs(most_halving_rungs(trials, reduction), reduction);
  return rules;
}

// The jobs of a study by trial and rung: those that have begun, and the losses of those that have
// ended.
struct JobTable {
  std::set<std::pair<std::size_t, std::size_t>> begun;
  std::map<std::size_t, std::vector<std::pair<double, std::size_t>>> ended;
};

// Algorithm 2 of Li et al. 2020 (get_job), without its new trials.
std::optional<TrialJob> promotion_by_the_paper(JobTable table, std::size_t rungs,
                                               std::int64_t reduction) {
  for (std::size_t k = rungs - 1; k-- > 0;) {
    auto& ended = table.ended[k];
    std::sort(ended.begin(), ended.end());
    const std::size_t top = ended.size() / static_cast<std::size_t>(reduction);
    for (std::size_t i = 0; i < top; ++i) {
      const std::size_t trial = ended[i].second;
      if (!table.begun.contains({trial, k + 1})) return TrialJob{trial, k + 1, {}, {}};
    }
  }
  return std::nullopt;
}

TEST(Halving, PromotesAsThePaperDoesWhateverEndsFirst) {
  std::mt19937 random(7);
  for (int round = 0; round < 30; ++round) {
    const auto trials = std::uniform_int_distribution<std::int64_t>(1, 40)(random);
    const auto reduction = std::uniform_int_distribution<std::int64_t>(2, 4)(random);
    const auto workers = std::uniform_int_distribution<std::size_t>(1, 6)(random);
    Study study{rules_of(TuningSearch::Random, trials, reduction), {}};
    JobTable table;
    std::vector<TrialJob> running;
    while (true) {
      const auto job = running.size() < workers ? next_job(study) : std::nullopt;
      if (running.size() < workers) {
        const auto expected = promotion_by_the_paper(table, study.rules.rungs.size(), reduction);
        const bool begins = !expected && study.trials.size() < static_cast<std::size_t>(trials);
        ASSERT_EQ(job.has_value(), expected.has_value() || begins);
        if (job) {
          EXPECT_EQ(job->trial, expected ? expected->trial : study.trials.size());
          EXPECT_EQ(job->rung, expected ? expected->rung : 0);
        }
      }
      if (job) {
        begin(study, *job);
        table.begun.insert({job->trial, job->rung});
        running.push_back(*job);
        continue;
      }
      if (running.empty()) break;
      const auto at = std::uniform_int_distribution<std::size_t>(0, running.size() - 1)(random);
      const double loss = std::uniform_real_distribution<double>(1.0, 5.0)(random);
      complete(study, running[at], loss);
      table.ended[running[at].rung].push_back({loss, running[at].trial});
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(at));
    }
    EXPECT_EQ(study.trials.size(), static_cast<std::size_t>(trials));
  }
}

TEST(Halving, FindsTheBestTrialOfCurvesThatDoNotCross) {
  Study study{rules_of(TuningSearch::Random, 27, 3), {}};
  const auto loss = [](const TrialJob& job, std::size_t) {
    return std::abs(std::log(job.values[0] / 1e-3)) + 1.0 / static_cast<double>(job.rung + 1);
  };
  const auto jobs =
      run_study(study, 4, [](const TrialJob&) { return Seconds(1.0); }, {[](auto&&...) {}, loss});
  const Trial& best = study.trials[ranking(study).front()];
  EXPECT_EQ(best.losses.size(), study.rules.rungs.size());
  for (const Trial& trial : study.trials)
    EXPECT_LE(std::abs(std::log(best.values[0] / 1e-3)),
              std::abs(std::log(trial.values[0] / 1e-3)));
  // No worker has two jobs at once.
  for (const ScheduledJob& a : jobs) {
    for (const ScheduledJob& b : jobs) {
      if (&a == &b || a.worker != b.worker) continue;
      EXPECT_TRUE(a.end <= b.start || b.end <= a.start);
    }
  }
}

// A trial that diverges is not promoted, and its rung still counts it.
TEST(Halving, LeavesDivergedTrialsBehind) {
  Study study{rules_of(TuningSearch::Random, 9, 3), {}};
  run_study(study, 2, [](const TrialJob&) { return Seconds(1.0); },
            {[](auto&&...) {}, [](const TrialJob&, std::size_t) { return std::nan(""); }});
  EXPECT_EQ(study.trials.size(), 9U);
  for (const Trial& trial : study.trials) EXPECT_EQ(trial.losses.size(), 1U);
}

TEST(Study, DependsOnItsRulesAndLossesAlone) {
  for (const TuningSearch search : enumerators<TuningSearch>()) {
    const StudyRules rules = rules_of(search, 12, 3);
    const auto loss = [](const TrialJob& job, std::size_t) {
      return std::abs(std::log(job.values[0] / 2e-3)) + job.values[1] +
             1.0 / static_cast<double>(job.rung + 1);
    };
    const auto time = [](const TrialJob& job) {
      return Seconds(1.0 + 0.1 * static_cast<double>(job.trial % 3));
    };
    std::vector<std::vector<std::vector<double>>> seen;
    for (int round = 0; round < 2; ++round) {
      Study study{rules, {}};
      run_study(study, 3, time, {[](auto&&...) {}, loss});
      seen.emplace_back();
      for (const Trial& trial : study.trials) {
        seen.back().push_back(trial.values);
        seen.back().push_back(trial.losses);
      }
    }
    EXPECT_EQ(seen[0], seen[1]) << name_of(search);
  }
}

TEST(Population, ReplacesTheWorstByThePerturbedBest) {
  StudyRules rules = rules_of(TuningSearch::Population, 8, 4);
  Study study{rules, {}};
  std::vector<TrialJob> jobs;
  const auto loss = [&](const TrialJob& job, std::size_t) {
    return static_cast<double>(job.copied_from ? *job.copied_from : job.trial);
  };
  run_study(study, 3, [](const TrialJob&) { return Seconds(1.0); },
            {[&](const TrialJob& job, std::size_t) { jobs.push_back(job); }, loss});
  // Every trial trains to the end; in each generation two of eight continue from one of the best
  // two.
  EXPECT_EQ(jobs.size(), 8U * rules.rungs.size());
  for (std::size_t rung = 1; rung < rules.rungs.size(); ++rung) {
    std::set<std::size_t> copies;
    for (const TrialJob& job : jobs) {
      if (job.rung == rung && job.copied_from) copies.insert(job.trial);
    }
    EXPECT_EQ(copies.size(), 2U) << rung;
  }
  for (const TrialJob& job : jobs) {
    if (job.rung == 1) {
      EXPECT_EQ(job.copied_from.has_value(), job.trial >= 6);
      EXPECT_LT(job.copied_from.value_or(0), 2U);
    }
    EXPECT_GE(job.values[0], 1e-4);
    EXPECT_LE(job.values[0], 1e-2);
  }
}

// At its own points a process without noise gives their values; far away its mean and its full
// width.
TEST(GaussianProcess, InterpolatesAndDoubtsWhatIsFar) {
  std::vector<std::vector<double>> places;
  std::vector<double> values;
  for (int i = 0; i <= 10; ++i) {
    places.push_back({0.1 * i});
    values.push_back(std::sin(0.6 * i));
  }
  const GaussianProcess process(places, values);
  for (std::size_t i = 0; i < places.size(); ++i)
    EXPECT_NEAR(process.at(places[i]).mean, values[i], 0.02);
  EXPECT_NEAR(process.at({0.55}).mean, std::sin(3.3), 0.05);
  EXPECT_GT(process.at({3.0}).deviation, 3.0 * process.at({0.55}).deviation);
}

// The integral of max(best - y, 0) over the normal density, by the trapezoidal rule.
TEST(GaussianProcess, ExpectedImprovementIsItsIntegral) {
  for (const double mean : {-1.0, 0.5, 2.0}) {
    for (const double deviation : {0.1, 1.0}) {
      double integral = 0.0;
      const double step = deviation / 1000.0;
      for (double y = mean - 10.0 * deviation; y < 0.3; y += step) {
        const double z = (y - mean) / deviation;
        integral += (0.3 - y) * std::exp(-0.5 * z * z) / (deviation * std::sqrt(2.0 * M_PI)) * step;
      }
      EXPECT_NEAR(expected_improvement({mean, deviation}, 0.3), integral, 1e-3 * deviation);
    }
  }
}

// Over seeds, proposals come nearer to the optimum of a smooth function than random values do.
TEST(Bayes, ComesNearerThanRandomValues) {
  const auto best_of = [](TuningSearch search, std::uint64_t seed) {
    StudyRules rules = rules_of(search, 24, 2);
    rules.parameters = {parameter_of("lr=1e-5..1e-1"), parameter_of("beta2=0.5..0.9999")};
    rules.rungs = {1.0};
    rules.seed = seed;
    Study study{rules, {}};
    run_study(study, 2, [](const TrialJob&) { return Seconds(1.0); },
              {[](auto&&...) {},
               [](const TrialJob& job, std::size_t) {
                 const double x = std::log10(job.values[0]) + 2.6;
                 const double y = std::log10(1.0 - job.values[1]) + 1.7;
                 return x * x + y * y;
               }});
    return study.trials[ranking(study).front()].losses.back();
  };
  double of_bayes = 0.0, of_random = 0.0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    of_bayes += best_of(TuningSearch::Bayes, seed);
    of_random += best_of(TuningSearch::Random, seed);
  }
  EXPECT_LT(of_bayes, 0.3 * of_random);
}

// Rates above 0.01 diverge at once. Later trials learn from that also at rungs that no diverged
// trial reaches.
TEST(Bayes, AvoidsWhatHasDiverged) {
  const auto diverged_of = [](TuningSearch search) {
    int diverged = 0;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      StudyRules rules = rules_of(search, 40, 2);
      rules.parameters = {parameter_of("lr=1e-4..1")};
      rules.seed = seed;
      Study study{rules, {}};
      run_study(study, 2, [](const TrialJob&) { return Seconds(1.0); },
                {[](auto&&...) {},
                 [](const TrialJob& job, std::size_t) {
                   return job.values[0] > 1e-2 ? INFINITY : 1.0 - std::log10(job.values[0]) / 10.0;
                 }});
      for (std::size_t i = study.trials.size() / 2; i < study.trials.size(); ++i)
        diverged += study.trials[i].diverged() ? 1 : 0;
    }
    return diverged;
  };
  EXPECT_LT(diverged_of(TuningSearch::Bayes), diverged_of(TuningSearch::Random) / 2);
}

// One worker: the sum of all jobs. Many: no less than the longest chain of one trial.
TEST(StudyForecast, LiesBetweenTheLongestTrialAndTheSumOfJobs) {
  const StudyRules rules = rules_of(TuningSearch::Random, 27, 3);
  const auto time = [&](const TrialJob& job, std::int64_t) {
    const double before = job.rung == 0 ? 0.0 : rules.rungs[job.rung - 1];
    return Seconds(1000.0 * (rules.rungs[job.rung] - before));
  };
  const StudyForecast alone = forecast_study(rules, 1, time, 20);
  EXPECT_NEAR(alone.wall.p50, alone.busy.value(), 1e-9 * alone.busy.value());
  double before = alone.wall.p50;
  for (const std::size_t workers : {2U, 4U, 64U}) {
    const StudyForecast forecast = forecast_study(rules, workers, time, 20);
    EXPECT_LE(forecast.wall.p50, before * 1.001);
    EXPECT_GE(forecast.wall.p50 * static_cast<double>(workers), forecast.busy.value() * 0.999);
    before = forecast.wall.p50;
  }
  EXPECT_GE(before, 1000.0 * 0.999);
  EXPECT_NEAR(alone.jobs[0], 27.0, 1e-9);
  EXPECT_GE(alone.jobs[1], 9.0);
}

TEST(TunedParameter, PlacesAndValuesAreInverse) {
  for (const std::string text : {"lr=1e-5..1e-1", "beta2=0.9..0.9999", "weight-decay=0..0.5",
                                 "global-batch=4..64", "clip=0.5,1,2"}) {
    const TunedParameter parameter = parameter_of(text);
    for (const double place : {0.01, 0.3, 0.62, 0.99}) {
      const double value = parameter.value_at(place);
      EXPECT_NEAR(parameter.value_at(parameter.place_of(value)), value, 1e-12 * value) << text;
    }
  }
  // The middle of logarithms is the geometric mean; batches are powers of two times the smallest.
  EXPECT_NEAR(parameter_of("lr=1e-5..1e-1").value_at(0.5), 1e-3, 1e-9);
  EXPECT_EQ(parameter_of("global-batch=4..64").listed, (std::vector<double>{4, 8, 16, 32, 64}));
}

}  // namespace
}  // namespace shardwright::planner
