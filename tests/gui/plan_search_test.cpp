#include "gui/models/plan_search.hpp"

#include <gtest/gtest.h>

#include <QProgressBar>
#include <QSignalSpy>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/spec/plan_json.hpp"
#include "gui/models/background_job.hpp"
#include "gui/models/chosen_request.hpp"
#include "gui/models/selection.hpp"
#include "gui/window/progress_status.hpp"
#include "tests/gui/small_scenario.hpp"

namespace shardwright::gui {
namespace {

class PlanSearchTest : public testing::Test {
 protected:
  PlanSearchTest() {
    QObject::connect(&search_, &PlanSearch::found, &search_,
                     [this](const PlanSetPointer& set) { sets_.push_back(set); });
  }

  void wait_until(const QSignalSpy& signal) {
    ASSERT_TRUE(wait_for([&] { return signal.count() == 1; }));
  }

  // Searches to the end. Returns the last set that was found, or null.
  PlanSetPointer answer_to(const ScenarioChoice& choice) {
    search_.request(choice);
    wait_until(finished_);
    return sets_.empty() ? nullptr : sets_.back();
  }

  PlanSearch search_;
  std::vector<PlanSetPointer> sets_;
  QSignalSpy started_{&search_, &PlanSearch::started};
  QSignalSpy finished_{&search_, &PlanSearch::finished};
};

TEST_F(PlanSearchTest, FindsThePlansThatTheCommandFinds) {
  const PlanSetPointer last = answer_to(small_choice());
  ASSERT_TRUE(last);
  EXPECT_TRUE(last->complete);
  EXPECT_FALSE(search_.is_running());
  ASSERT_FALSE(last->plans.empty());
  EXPECT_EQ(last->plans.front().plan, small_set()->plans.front().plan);
  EXPECT_EQ(last->counts.space, small_set()->counts.space);
}

// The best, the front and the layouts are of the same few plans, and the narrow search had found
// them before.
TEST_F(PlanSearchTest, CountsEachPlanOfTheWholeSpaceOnce) {
  ScenarioChoice choice = small_choice();
  choice.constraints =
      "tp=2; pp=2; vpp=1; cp=1; schedule=1f1b; zero=1; recompute=none; micro_batch=1,2";
  const PlanSetPointer last = answer_to(choice);
  ASSERT_TRUE(last);
  const planner::SearchCounts plain = planner::search(load_request(choice)).counts;
  ASSERT_GT(plain.evaluated, 1);
  EXPECT_EQ(last->counts.space, plain.space);
  EXPECT_EQ(last->counts.evaluated, plain.evaluated);
  EXPECT_EQ(last->counts.simulated, plain.simulated);
  EXPECT_EQ(last->counts.simulated, last->counts.evaluated);

  planner::PlanRequest request = load_request(choice);
  request.top = 1;  // The front needs others, simulated on the way to the best.
  request.layouts = kShownLayouts;
  const planner::SearchCounts again = planner::search(request).counts;
  EXPECT_LE(again.simulated, again.evaluated);
}

// The best hundred are all of a kind; the points shall show what else there is.
TEST_F(PlanSearchTest, TheAnswerHasPlansOfEveryTensorAndPipelineDegreeThatFits) {
  planner::PlanRequest request = small_request();
  request.top = 1000;
  std::set<std::pair<std::int64_t, std::int64_t>> missing;
  for (const planner::PlanCandidate& each : planner::search(request).plans)
    missing.emplace(each.plan.tp, each.plan.pp);
  ASSERT_GT(missing.size(), 5U);
  request.top = 1;
  request.layouts = kShownLayouts;
  for (const planner::PlanCandidate& each : plan_set_of(request, planner::search(request)).plans)
    missing.erase({each.plan.tp, each.plan.pp});
  EXPECT_TRUE(missing.empty());
}

// "1,024" in "96 plans checked, 1,024 simulated".
qint64 number_before(const QString& text, const QString& word) {
  return text.section(word, 0, 0).section(u", "_s, -1).remove(u',').toLongLong();
}

// The views get the first plans long before the whole space is searched, best first, and none that
// was shown is lost to a worse one.
TEST_F(PlanSearchTest, PlansComeAsTheyAreFound) {
  const QSignalSpy progressed(&search_, &PlanSearch::progressed);
  answer_to(small_choice());
  double share = 0.0;
  qint64 simulated = 0;
  for (const QList<QVariant>& each : progressed) {
    EXPECT_GE(each.at(0).toDouble(), share) << "the search of the whole space goes on";
    share = each.at(0).toDouble();
    const QString text = each.at(1).toString();
    const qint64 simulated_now = number_before(text, u" simulated"_s);
    EXPECT_GE(simulated_now, simulated)
        << "plans of the first look are shown, " << qPrintable(text);
    simulated = simulated_now;
    if (share >= 0.1) continue;
    EXPECT_FALSE(text.contains(u"final"_s) || text.contains(u"ruled out"_s)) << qPrintable(text);
  }
  EXPECT_GT(share, 0.1);
  EXPECT_GT(simulated, 0);
  // The first look, the narrow search and the whole one send at least one answer each.
  ASSERT_GE(sets_.size(), 3U);
  for (const planner::PlanCandidate& of_first_look : sets_.front()->plans) {
    EXPECT_EQ(of_first_look.plan.schedule, ScheduleKind::OneFOneB);
    EXPECT_EQ(of_first_look.plan.micro_batch, 1);
  }
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    ASSERT_FALSE(sets_[i]->plans.empty());
    EXPECT_EQ(sets_[i]->on_front.size(), sets_[i]->plans.size());
    EXPECT_EQ(sets_[i]->complete, i + 1 == sets_.size());
    EXPECT_FALSE(sets_[i]->request.found);
    EXPECT_FALSE(sets_[i]->request.layer_costs) << "a shown set would keep their memory";
    if (i == 0) continue;
    EXPECT_LE(sets_[i]->plans.front().score, sets_[i - 1]->plans.front().score);
  }
}

// The batches that are tried have faster steps than the one that is chosen.
TEST_F(PlanSearchTest, NoStepIsReportedWhileTheBatchIsOpen) {
  ScenarioChoice choice = small_choice();
  choice.gpus = 2;
  choice.global_batch = 0;
  const QSignalSpy progressed(&search_, &PlanSearch::progressed);
  const PlanSetPointer last = answer_to(choice);
  ASSERT_TRUE(last);
  ASSERT_FALSE(progressed.isEmpty());
  for (const QList<QVariant>& each : progressed) {
    EXPECT_EQ(each.at(0).toDouble(), PlanSearch::kUnknownShare);
    EXPECT_TRUE(each.at(1).toString().contains(u"checked"_s));
    EXPECT_FALSE(each.at(1).toString().contains(u"best"_s));
  }
  for (const planner::PlanCandidate& plan : last->plans)
    EXPECT_EQ(plan.plan.global_batch, last->plans.front().plan.global_batch);
}

TEST(PlanStream, HandsOverWhatIsNewAndKeepsWhatWasThere) {
  std::vector<PlanSetPointer> sets;
  PlanStream stream(small_request(), std::chrono::milliseconds(0),
                    [&](PlanSetPointer set) { sets.push_back(std::move(set)); });
  const auto& plans = small_set()->plans;
  stream.keep({plans[1], plans[2]});
  stream.take({plans[3]});
  stream.take({plans[3]});
  ASSERT_EQ(sets.size(), 1U);
  stream.take({plans[0], plans[1]});
  ASSERT_EQ(sets.size(), 2U);
  ASSERT_EQ(sets.back()->plans.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(sets.back()->plans[i].plan, plans[i].plan);
  EXPECT_FALSE(sets.back()->complete);
}

TEST(PlanStream, RestsBetweenSets) {
  int handed = 0;
  PlanStream stream(small_request(), std::chrono::hours(1),
                    [&](const PlanSetPointer&) { ++handed; });
  stream.take({small_set()->plans[0]});
  stream.take({small_set()->plans[1]});
  EXPECT_EQ(handed, 1);
}

TEST_F(PlanSearchTest, ANewerRequestTakesThePlaceOfAnOlderOne) {
  search_.request(ScenarioChoice());  // The search takes seconds.
  wait_until(started_);
  answer_to(small_choice());
  ASSERT_FALSE(sets_.empty());
  EXPECT_EQ(sets_.back()->request.model.name, "llama3.2-1b");
  for (const PlanSetPointer& set : sets_) EXPECT_NE(set->request.model.name, "llama3-70b");
}

TEST_F(PlanSearchTest, StopsWhenAsked) {
  ScenarioChoice choice;
  choice.model = "llama3.1-405b";
  choice.gpus = 16384;
  search_.request(choice);
  wait_until(started_);
  search_.stop();
  wait_until(finished_);
  EXPECT_FALSE(search_.is_running());
}

bool has_as_good(const PlanSet& set, const planner::PlanCandidate& plan) {
  return std::any_of(set.plans.begin(), set.plans.end(), [&](const auto& other) {
    return other.result.step <= plan.result.step &&
           other.result.memory().peak <= plan.result.memory().peak;
  });
}

// The search stops in the whole space, after the narrow search has shown its front.
TEST_F(PlanSearchTest, StoppingKeepsTheFrontThatWasShown) {
  bool narrow_is_done = false;
  QObject::connect(&search_, &PlanSearch::progressed, &search_, [&] {
    if (narrow_is_done || sets_.empty() || sets_.back()->counts.space == 0) return;
    narrow_is_done = true;
    search_.stop();
  });
  answer_to(ScenarioChoice());
  ASSERT_TRUE(narrow_is_done);
  const auto narrow = std::find_if(sets_.begin(), sets_.end(),
                                   [](const auto& set) { return set->counts.space > 0; });
  ASSERT_NE(narrow, sets_.end());
  EXPECT_FALSE(sets_.back()->complete);
  EXPECT_EQ(sets_.back()->on_front.size(), sets_.back()->plans.size());
  for (const planner::PlanCandidate& plan : (*narrow)->plans)
    EXPECT_TRUE(has_as_good(*sets_.back(), plan)) << to_json(plan.plan).dump();
}

TEST_F(PlanSearchTest, AnAbandonedSearchSaysNothingMore) {
  search_.request(ScenarioChoice());
  ASSERT_TRUE(wait_for([&] { return !sets_.empty(); }));
  search_.abandon();
  EXPECT_EQ(finished_.count(), 1);
  EXPECT_FALSE(search_.is_running());
  const std::size_t before = sets_.size();
  QTest::qWait(1500);
  EXPECT_EQ(sets_.size(), before);
  EXPECT_EQ(finished_.count(), 1);
}

TEST(PlanSearch, EndsWithItsOwner) {
  auto search = std::make_unique<PlanSearch>();
  QSignalSpy started(search.get(), &PlanSearch::started);
  search->request(ScenarioChoice());
  ASSERT_TRUE(wait_for([&] { return started.count() == 1; }));
  search.reset();
  QCoreApplication::processEvents();
}

TEST_F(PlanSearchTest, NamesTheFieldOfAProblem) {
  std::vector<Problem> problems;
  QObject::connect(&search_, &PlanSearch::failed, &search_,
                   [&](const std::vector<Problem>& found) { problems = found; });
  ScenarioChoice choice = small_choice();
  choice.model = "no-such-model";
  answer_to(choice);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems.front().where, "model");
}

TEST_F(PlanSearchTest, SaysWhyNothingFits) {
  ScenarioChoice choice = small_choice();
  choice.model = "llama3-70b";
  choice.gpus = 1;
  const PlanSetPointer last = answer_to(choice);
  ASSERT_TRUE(last);
  EXPECT_TRUE(last->plans.empty());
  ASSERT_TRUE(last->infeasible);
  EXPECT_GT(last->infeasible->obstacle.space, 0);
}

TEST(BackgroundJob, OnlyTheNewestResultCounts) {
  QObject context;
  std::vector<int> results;
  BackgroundJob<int> job(
      &context, [&](const auto& result) { results.push_back(*result); }, [](const QString&) {});
  for (int i = 0; i < 20; ++i) job.start([i](const std::stop_token&) { return i; });
  ASSERT_TRUE(wait_for([&] { return !job.is_running(); }));
  EXPECT_EQ(results, std::vector<int>{19});
}

TEST(BackgroundJob, ReportsAFailureInWords) {
  QObject context;
  QString failure;
  BackgroundJob<int> job(
      &context, [](const auto&) {}, [&](const QString& text) { failure = text; });
  job.start([](const std::stop_token&) -> int {
    throw InputError("plan.json", {{"/plan/tp", "3", "a divisor of 64"}});
  });
  ASSERT_TRUE(wait_for([&] { return !failure.isEmpty(); }));
  EXPECT_EQ(failure, u"plan.json: plan › tp: 3; expected a divisor of 64"_s);
}

TEST(Selection, KeepsAPlanThatIsFoundAgain) {
  Selection selection;
  selection.show(small_set());
  EXPECT_EQ(selection.chosen(), std::optional<std::size_t>(0));
  selection.choose(3);
  auto reversed = std::make_shared<PlanSet>(*small_set());
  std::reverse(reversed->plans.begin(), reversed->plans.end());
  selection.show(reversed);
  ASSERT_TRUE(selection.chosen());
  EXPECT_EQ(reversed->plans[*selection.chosen()].plan, small_set()->plans[3].plan);
  selection.choose(small_set()->plans.size());
  EXPECT_FALSE(selection.chosen());
  selection.show(nullptr);
  EXPECT_FALSE(selection.scenario());
}

// All plans are checked before the last ones are simulated, whose number nobody knows.
TEST(SearchStatus, HasNoBarWhereTheEndIsUnknown) {
  PlanSearch search;
  const SearchStatus status(&search);
  const auto& bar = *status.findChild<QProgressBar*>();
  Q_EMIT search.started();
  Q_EMIT search.progressed(0.5, u"10 plans checked"_s);
  EXPECT_FALSE(bar.isHidden());
  EXPECT_EQ(2 * bar.value(), bar.maximum());
  Q_EMIT search.progressed(1.0, u"20 plans checked"_s);
  EXPECT_TRUE(bar.isHidden());
}

}  // namespace
}  // namespace shardwright::gui
