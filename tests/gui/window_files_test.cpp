#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QLabel>
#include <QSpinBox>
#include <QTableWidget>
#include <QToolButton>
#include <nlohmann/json.hpp>

#include "core/spec/cluster_json.hpp"
#include "core/spec/model_json.hpp"
#include "gui/timeline/timeline_view.hpp"
#include "gui/views/message_bar.hpp"
#include "gui/views/step_charts.hpp"
#include "tests/gui/example_step.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

using testing::Not;

class WindowFilesTest : public WindowTest {
 protected:
  // Writes a plan that lacks all of its members.
  QString write_bad_plan() {
    return write("bad.json", R"({"schema": "shardwright/plan", "version": 1})");
  }

  QString write_step(const char* name) {
    return write(name, to_json(*fixtures::small_step().timeline).dump());
  }

  const TimelineTracks& tracks() { return window_.findChild<TimelineView*>()->canvas().tracks(); }

  bool shows_plan(std::size_t plan) {
    return wait_for([&] { return window_.selection().scenario() == small_set()->scenario(plan); });
  }

  bool waits_to_say(const char* text) {
    return wait_for([&] { return said().contains(to_qstring(text)); });
  }
};

TEST_F(WindowFilesTest, DroppedPlansAreCompared) {
  const QString first = write_plan("first.json", 0);
  const QString second = write_plan("second.json", 3);
  drop({first, second});
  ASSERT_TRUE(window_.selection().set());
  EXPECT_EQ(window_.selection().set()->plans.size(), 2U);
  EXPECT_EQ(window_.selection().compared(), std::optional<std::size_t>(1));
  EXPECT_TRUE(said().contains(u"second.json"_s));
  EXPECT_FALSE(find<QLabel>("verdict").text().isEmpty());
  // The front has the plans of both files.
  const PlanSet& both = *window_.selection().set();
  const auto beats = [&](std::size_t one, std::size_t other) {
    const sim::StepResult &a = both.plans[one].result, &b = both.plans[other].result;
    return a.step < b.step && a.memory().peak < b.memory().peak;
  };
  EXPECT_EQ(both.on_front[0], !beats(1, 0));
  EXPECT_EQ(both.on_front[1], !beats(0, 1));
}

TEST_F(WindowFilesTest, AFileTakesThePlaceOfARunningSearch) {
  window_.document().reset(ScenarioChoice());
  ASSERT_TRUE(wait_for([&] { return window_.selection().set() != nullptr; }));
  ASSERT_TRUE(window_.is_busy());
  window_.open({write_plan("first.json", 0)});
  const auto shows_the_file = [&] {
    const PlanSetPointer set = window_.selection().set();
    return set->plans.size() == 1 && set->request.model.name == "llama3.2-1b";
  };
  ASSERT_TRUE(wait_for(shows_the_file));
  QTest::qWait(1500);  // The stopped search has the time to say what it had.
  EXPECT_TRUE(shows_the_file());
  EXPECT_FALSE(find<QToolButton>("stop_search").isVisible());
}

TEST_F(WindowFilesTest, AFileThatChangesIsOfferedAndReadAgain) {
  const QString path = write_plan("plan.json", 0);
  drop({path});
  window_.raise_view(u"sweeps"_s);
  write_plan("plan.json", 3);
  ASSERT_TRUE(waits_to_say("plan.json has changed"));
  EXPECT_EQ(window_.selection().scenario(), small_set()->scenario(0));  // No file was read again.
  click(u"plan.json has changed"_s, "offer");
  ASSERT_TRUE(shows_plan(3));
  EXPECT_FALSE(said().contains(u"has changed"_s));

  // A writer that replaces the file, as most do, is noticed each time.
  for (const std::size_t plan : {5, 0}) {
    const QString other = write_plan("other.json", plan);
    ASSERT_TRUE(QFile::remove(path) && QFile::rename(other, path));
    ASSERT_TRUE(waits_to_say("plan.json has changed"));
    QTest::keyClick(&window_, Qt::Key_F5);
    ASSERT_TRUE(shows_plan(plan));
  }
  QFile::remove(path);
  ASSERT_TRUE(waits_to_say("plan.json is gone"));
  write_plan("plan.json", 3);
  ASSERT_TRUE(waits_to_say("plan.json has changed"));
}

// An edit makes the fields other ones than those of the file.
TEST_F(WindowFilesTest, AScenarioThatChangesIsOfferedUntilAFieldIsEdited) {
  ScenarioChoice choice = small_choice();
  const auto write_batch = [&](std::int64_t batch) {
    choice.global_batch = batch;
    return write("scenario.json", scenario_file(choice).dump());
  };
  drop({write_batch(16)});
  write_batch(32);
  ASSERT_TRUE(waits_to_say("scenario.json has changed"));
  click(u"scenario.json has changed"_s, "offer");
  ASSERT_TRUE(wait_for([&] { return window_.document().choice().global_batch == 32; }));
  choice.gpus = 2 * window_.document().choice().gpus;
  window_.document().replace(u"an edit"_s, choice);
  write_batch(64);
  QTest::qWait(1000);
  EXPECT_FALSE(said().contains(u"has changed"_s));
  EXPECT_EQ(window_.document().choice().global_batch, 32);
}

TEST_F(WindowFilesTest, OffersThatComeTogetherAreAnsweredOneByOne) {
  const QString first = write_plan("first.json", 0);
  const QString second = write_plan("second.json", 3);
  const QString step = write_step("step.json");
  drop({first, second, step, write("bad.json", "{")});
  write_plan("first.json", 5);
  write_plan("second.json", 6);
  write("step.json", to_json(*fixtures::small_step().timeline).dump() + " ");
  const auto mentions = [&](const char* text) { return said().contains(to_qstring(text)); };
  ASSERT_TRUE(wait_for([&] {
    return mentions("first.json has changed") && mentions("second.json has changed") &&
           mentions("step.json has changed");
  }));
  EXPECT_TRUE(mentions("bad.json"));

  click(u"second.json has changed"_s, "close_message");
  EXPECT_FALSE(mentions("second.json has changed"));
  EXPECT_TRUE(mentions("first.json has changed") && mentions("step.json has changed"));
  // A dismissed offer returns when its file changes again, and the other offers remain.
  write_plan("second.json", 7);
  ASSERT_TRUE(wait_for([&] { return mentions("second.json has changed"); }));

  // The two plans are compared: they are read again together. The timeline's offer waits.
  click(u"first.json has changed"_s, "offer");
  ASSERT_TRUE(shows_plan(5));
  EXPECT_FALSE(mentions("first.json has changed") || mentions("second.json has changed"));
  EXPECT_TRUE(mentions("step.json has changed"));
  EXPECT_TRUE(mentions("bad.json"));
  click(u"step.json has changed"_s, "offer");
  ASSERT_TRUE(wait_for([&] { return !mentions("step.json has changed"); }));
}

TEST_F(WindowFilesTest, AFailureIsShownUntilTheFileIsReadOrTheMessageIsClosed) {
  drop({write("bad.json", "{")});
  drop({write("worse.json", "[")});
  drop({write_plan("good.json", 0)});
  const auto& bar = find<MessageBar>("message_bar");
  EXPECT_TRUE(said().contains(u"bad.json"_s) && said().contains(u"worse.json"_s));
  drop({write_plan("bad.json", 0)});
  EXPECT_THAT(said(), Not(Says("bad.json:")));
  EXPECT_TRUE(said().contains(u"worse.json"_s));
  trigger("view.close_messages");
  EXPECT_FALSE(bar.isVisible());
}

// The views keep most of a small window however many messages there are.
TEST_F(WindowFilesTest, ManyMessagesScroll) {
  window_.resize(640, 480);
  QStringList files;
  for (int i = 0; i < 12; ++i) files.append(write(qPrintable(QString::number(i)), "{"));
  drop(files);
  auto& bar = find<MessageBar>("message_bar");
  ASSERT_EQ(bar.rows().size(), 12U);
  EXPECT_LT(bar.height(), 160);
  // The newest message is in view and as wide as the bar.
  const QWidget* newest = bar.rows().back();
  ASSERT_TRUE(wait_for([&] { return !newest->visibleRegion().isEmpty(); }));
  EXPECT_LE(newest->width(), bar.width());
}

TEST_F(WindowFilesTest, AFileThatIsDamagedForAWhileComesBack) {
  const QString first = write_plan("first.json", 0);
  const QString second = write_plan("second.json", 3);
  drop({first, second});
  ASSERT_EQ(window_.selection().set()->plans.size(), 2U);
  write("second.json", "{");
  trigger("file.reload");
  ASSERT_TRUE(wait_for([&] { return window_.selection().set()->plans.size() == 1; }));
  ASSERT_TRUE(is_idle());
  write_plan("second.json", 5);
  trigger("file.reload");
  EXPECT_TRUE(wait_for([&] { return window_.selection().set()->plans.size() == 2; }));
}

TEST_F(WindowFilesTest, WhatIsOpenedWhileFilesAreReadIsReadNext) {
  window_.document().reset(small_choice());
  const QString timeline = write_step("timeline.json");
  const QString plan = write_plan("plan.json", 3);
  window_.open({timeline});
  window_.open({plan});
  EXPECT_TRUE(shows_plan(3));
}

TEST_F(WindowFilesTest, ASearchLeavesATimelineThatWasOpened) {
  const QString file = write_step("timeline.json");
  window_.document().reset(small_choice());
  drop({file});
  const auto shows_the_file = [&] {
    return tracks().timelines().size() == 1 && tracks().timelines().front()->spans.size() ==
                                                   fixtures::small_step().timeline->spans.size();
  };
  ASSERT_TRUE(shows_the_file());
  window_.start();
  ASSERT_TRUE(has_plans());
  EXPECT_TRUE(shows_the_file());
  window_.selection().choose(window_.selection().set()->plans.size() - 1);
  EXPECT_TRUE(wait_for([&] { return !window_.is_busy() && !shows_the_file(); }));
}

// Their names alone would not tell them apart.
TEST_F(WindowFilesTest, TwoTimelinesOfOneNameGoByTheirFolders) {
  window_.document().reset(small_choice());
  const QDir folder(folder_.path());
  ASSERT_TRUE(folder.mkdir(u"fast"_s) && folder.mkdir(u"slow"_s));
  const std::string text = to_json(*fixtures::small_step().timeline).dump();
  drop({write("slow/step.json", text), write("fast/step.json", text)});
  ASSERT_TRUE(tracks().compares());
  EXPECT_EQ(tracks().side_title(0).toStdString(), "slow/step.json");
  EXPECT_EQ(tracks().side_title(1).toStdString(), "fast/step.json");
}

TEST_F(WindowFilesTest, AFileThatIsNamedTwiceIsOpenedOnceAndThatIsSaid) {
  window_.document().reset(small_choice());
  const QDir folder(folder_.path());
  ASSERT_TRUE(folder.mkdir(u"plans"_s));
  const QString plan = write_plan("plan.json", 3);
  const QString link = folder.filePath(u"link.json"_s);
  ASSERT_TRUE(QFile::link(plan, link));
  for (const QString& again : {plan, folder.filePath(u"plans/../plan.json"_s), link}) {
    drop({plan, again});
    EXPECT_EQ(window_.selection().set()->plans.size(), 1U) << qPrintable(again);
    EXPECT_FALSE(window_.selection().compared());
    EXPECT_THAT(said(), Says(u"are opened once: "_s + QFileInfo(again).fileName()));
  }
  const QString other = write_plan("plans/plan.json", 0);
  drop({plan, other});
  EXPECT_EQ(window_.selection().set()->plans.size(), 2U);
  EXPECT_FALSE(said().contains(u"opened once"_s));
  EXPECT_THAT(said(), Says("/plan.json with plans/plan.json."));
}

// The scenario is the user's: a file that it no longer names is not put back.
TEST_F(WindowFilesTest, ReadingAgainChangesNoScenario) {
  window_.document().reset(small_choice());
  drop({write("cluster.json", to_json(small_set()->request.cluster).dump())});
  ASSERT_NE(window_.document().choice().cluster, small_choice().cluster);
  trigger("edit.undo");
  trigger("file.reload");
  ASSERT_TRUE(is_idle());
  EXPECT_EQ(window_.document().choice(), small_choice());
}

TEST_F(WindowFilesTest, AClusterThatChangedIsPlannedForAgain) {
  window_.document().reset(small_choice());
  ClusterSpec cluster = small_set()->request.cluster;
  const QString path = write("cluster.json", to_json(cluster).dump());
  drop({path});
  ASSERT_TRUE(shows([&](const PlanSet& set) { return set.complete && !window_.is_busy(); }));
  const Seconds before = window_.selection().set()->plans.front().result.step;
  cluster.accelerator.memory_bandwidth *= 0.5;
  write("cluster.json", to_json(cluster).dump());
  trigger("file.reload");
  ASSERT_TRUE(shows([&](const PlanSet& set) { return set.plans.front().result.step > before; }));
}

TEST_F(WindowFilesTest, APlanOfShippedPartsFillsTheScenario) {
  window_.document().reset(ScenarioChoice());
  drop({write_plan("first.json", 0)});
  EXPECT_EQ(find<QComboBox>("model").currentText(), u"llama3.2-1b"_s);
  EXPECT_EQ(find<QSpinBox>("gpus").value(), 8);
  EXPECT_FALSE(find<QLabel>("scenario_origin").isVisible());
  EXPECT_EQ(window_.selection().set()->plans.size(), 1U);  // No search took place.
  trigger("edit.undo");
  EXPECT_EQ(window_.document().choice(), ScenarioChoice());
}

TEST_F(WindowFilesTest, APlanOfOtherPartsSaysWhoseItIs) {
  Scenario scenario = small_set()->scenario(0);
  scenario.cluster.name = "of-my-own";
  drop({write("own.json", to_json(scenario).dump())});
  const auto& origin = find<QLabel>("scenario_origin");
  EXPECT_TRUE(origin.isVisible());
  EXPECT_THAT(origin.text(), Says("of-my-own"));
  EXPECT_EQ(window_.document().choice(), ScenarioChoice());
  // A gain of this plan is not one of the fields.
  auto& gains = find<SensitivityChart>("sensitivity");
  ASSERT_TRUE(wait_for([&] { return !gains.sensitivities().empty(); }));
  QCoreApplication::processEvents();
  QTest::mouseClick(&gains, Qt::LeftButton, {},
                    {gains.width() / 2, static_cast<int>(gains.yAxis->coordToPixel(0.0))});
  EXPECT_THAT(said(), Says("do not describe"));
  EXPECT_EQ(window_.document().choice(), ScenarioChoice());
}

TEST_F(WindowFilesTest, TheFirstOfSeveralScenariosIsTakenAndTheOthersAreNamed) {
  ScenarioChoice other = small_choice();
  other.global_batch *= 2;
  window_.document().reset(ScenarioChoice());
  drop({write("a.json", scenario_file(small_choice()).dump()),
        write("b.json", scenario_file(other).dump())});
  EXPECT_EQ(window_.document().choice(), small_choice());
  EXPECT_THAT(said(), Says("leaves out: b.json"));
}

// The plans of a file give way to those of the scenario, which is the one of the fields already.
TEST_F(WindowFilesTest, AScenarioOfTheFieldsIsPlannedForAgain) {
  window_.document().reset(small_choice());
  drop({write_plan("first.json", 0)});
  ASSERT_EQ(window_.selection().set()->plans.size(), 1U);
  drop({write("a.json", scenario_file(window_.document().choice()).dump())});
  EXPECT_TRUE(shows([](const PlanSet& set) { return set.plans.size() > 1; }));
}

TEST_F(WindowFilesTest, MorePlansOfTheScenarioJoinAndOthersAreNamed) {
  QStringList files;
  for (const std::size_t plan : {0, 3, 5})
    files.append(
        write(qPrintable(u"%1.json"_s.arg(plan)), to_json(small_set()->scenario(plan)).dump()));
  Scenario scenario = small_set()->scenario(0);
  scenario.cluster.name = "of-my-own";
  files.append(write("own.json", to_json(scenario).dump()));
  drop(files);
  EXPECT_EQ(window_.selection().set()->plans.size(), 3U);
  EXPECT_THAT(said(), Says("leaves out: own.json (plan)"));
}

TEST_F(WindowFilesTest, TwoClustersAreComparedByTheirBestPlans) {
  window_.document().reset(small_choice());
  ClusterSpec slow = small_set()->request.cluster, fast = slow;
  slow.name = "slow";
  fast.name = "fast";
  fast.accelerator.memory_bandwidth *= 2.0;
  slow.accelerator.memory_bandwidth *= 0.5;
  drop({write("slow.json", to_json(slow).dump()), write("fast.json", to_json(fast).dump())});
  ASSERT_TRUE(window_.selection().set());
  EXPECT_EQ(window_.selection().set()->request.cluster.name, "slow");
  EXPECT_THAT(said(), Says("Comparing slow.json with fast.json"));
  EXPECT_THAT(find<QLabel>("verdict").text(), Says("The plan of fast.json is"));
  EXPECT_TRUE(find<QComboBox>("cluster").currentText().endsWith(u"slow.json"_s));
}

TEST_F(WindowFilesTest, TwoModelsAreComparedByTheirBestPlans) {
  window_.document().reset(small_choice());
  ModelSpec deep = small_set()->request.model;
  deep.name = "deep";
  deep.layers *= 2;
  drop({write("model.json", to_json(small_set()->request.model).dump()),
        write("deep.json", to_json(deep).dump())});
  ASSERT_TRUE(window_.selection().set());
  EXPECT_EQ(window_.selection().set()->request.model.name, "llama3.2-1b");
  EXPECT_FALSE(find<QLabel>("verdict").text().isEmpty());
  EXPECT_GT(find<QTableWidget>("differences").rowCount(), 5);
}

TEST_F(WindowFilesTest, OneDamagedFileOfSeveralLeavesTheOthersAlone) {
  drop({write_bad_plan(), write_plan("good.json", 0)});
  ASSERT_TRUE(window_.selection().set());
  EXPECT_EQ(window_.selection().set()->plans.size(), 1U);
  EXPECT_THAT(said(), Says("bad.json"));
  EXPECT_THAT(said(), Says("model: "));
}

// The command line may name a damaged file; the search must not remove its error.
TEST_F(WindowFilesTest, TheErrorOfAFileStaysWhileASearchFindsPlans) {
  window_.document().reset(small_choice());
  drop({write_bad_plan()});
  ASSERT_TRUE(has_plans());
  auto& bar = find<MessageBar>("message_bar");
  EXPECT_TRUE(bar.isVisible());
  EXPECT_THAT(said(), Says("model: "));
  QTest::mouseClick(&find<QToolButton>("close_message"), Qt::LeftButton);
  EXPECT_FALSE(bar.isVisible());
}

// The window finds plans for the scenario that it shows if no named file has plans.
TEST_F(WindowFilesTest, FilesWithoutPlansLeaveTheWorkedExample) {
  const auto step = to_json(*fixtures::small_step().timeline).dump();
  window_.begin({write("huge.json", "{"), write("step.json", step)});
  const auto tells_and_shows_the_files = [&] {
    return said().contains(u"huge.json"_s) &&
           tracks().all_spans() == fixtures::small_step().timeline->spans.size();
  };
  // Either may come first.
  ASSERT_TRUE(wait_for([&] { return window_.selection().set() && tells_and_shows_the_files(); }));
  EXPECT_EQ(window_.selection().set()->request.model.name, ScenarioChoice().model);
}

// The window shows the plan of a file that the command line names.
TEST_F(WindowFilesTest, APlanThatIsNamedAtTheStartIsShownInstead) {
  window_.begin({write_plan("plan.json", 0)});
  ASSERT_TRUE(has_plans());
  QTest::qWait(500);  // A search would have begun.
  EXPECT_FALSE(window_.is_busy());
  EXPECT_EQ(window_.selection().scenario(), small_set()->scenario(0));
}

TEST_F(WindowFilesTest, AWrongScenarioTakesItsMessageBackAndNoOther) {
  const QString bad = write_bad_plan();
  ScenarioChoice wrong = small_choice();
  wrong.what_if[0] = 5000;  // This value has no field of its own.
  window_.document().reset(wrong);
  ASSERT_TRUE(is_idle());
  ASSERT_THAT(said(), Says("5000"));
  drop({bad});
  EXPECT_TRUE(said().contains(u"5000"_s));
  window_.document().reset(small_choice());
  ASSERT_TRUE(has_plans());
  EXPECT_THAT(said(), Not(Says("5000")));
  EXPECT_THAT(said(), Says("model: "));
}

TEST_F(WindowFilesTest, ATimelineOfSimulateIsShownAndCtrlFSearchesInIt) {
  drop({write_step("step.json")});
  auto* view = window_.findChild<TimelineView*>();
  EXPECT_TRUE(view->isVisible());
  EXPECT_EQ(tracks().all_spans(), fixtures::small_step().timeline->spans.size());
  view->canvas().setFocus();
  QTest::keyClick(&view->canvas(), Qt::Key_F, Qt::ControlModifier);
  const QWidget* focus = QApplication::focusWidget();
  ASSERT_NE(focus, nullptr);
  EXPECT_TRUE(view->isAncestorOf(focus)) << qPrintable(focus->objectName());
}

TEST_F(WindowFilesTest, ADroppedClusterIsPlannedFor) {
  window_.document().reset(small_choice());
  ClusterSpec cluster = small_set()->request.cluster;
  cluster.name = "of-my-own";
  drop({write("cluster.json", to_json(cluster).dump())});
  ASSERT_TRUE(shows([&](const PlanSet& set) { return set.request.cluster.name == "of-my-own"; }));
  trigger("edit.undo");
  EXPECT_EQ(window_.document().choice().cluster, small_choice().cluster);
}

}  // namespace
}  // namespace shardwright::gui
