// Timeline, Topology and Schedule show the step of the chosen plan, of a run or of a file.
#include <QDir>
#include <QLabel>
#include <QLineEdit>
#include <QToolButton>
#include <nlohmann/json.hpp>

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "core/timeline/timeline.hpp"
#include "gui/timeline/timeline_view.hpp"
#include "gui/views/message_bar.hpp"
#include "tests/gui/example_step.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

using testing::Not;

class ShownStepTest : public WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    window_.document().reset(small_choice());
    ASSERT_TRUE(is_idle());
    window_.raise_view(u"timeline"_s);
    show_plans();
  }

  // Writes the folder of a run with one recorded step, and with its plan if there is one.
  QString write_run(const char* name, const std::optional<Scenario>& plan = std::nullopt) {
    const QString folder = folder_.filePath(to_qstring(name));
    QDir().mkpath(folder);
    const auto put = [&](const char* file, const QString& text) {
      write_text_file(QDir(folder).filePath(to_qstring(file)), text);
    };
    put("metrics.jsonl", u"{\"step\": 0, \"loss\": 5, \"step_s\": 0.1}\n"_s);
    const auto step = gui::fixtures::measured(*gui::fixtures::small_step().timeline, 2.0);
    put("timeline-2-0.json", to_qstring(to_json(*step).dump()));
    if (plan) put("plan.json", to_qstring(to_json(*plan).dump()));
    return folder;
  }

  QString write_step(const char* name) {
    return write(name, to_json(*gui::fixtures::small_step().timeline).dump());
  }

  void show(const Scenario& scenario) {
    window_.selection().show(
        std::make_shared<const PlanSet>(plan_set_of(scenario, u"another search"_s)));
  }

  // Returns the origins of the steps in Timeline once the window is idle.
  std::vector<TimelineOrigin> origins() {
    window_.raise_view(u"timeline"_s);
    EXPECT_TRUE(is_idle());
    std::vector<TimelineOrigin> found;
    for (const auto& timeline : timelines()) found.push_back(timeline->origin);
    return found;
  }

  const std::vector<std::shared_ptr<const Timeline>>& timelines() {
    return window_.findChild<TimelineView*>()->canvas().tracks().timelines();
  }

  QString hint_of(const char* view) {
    return window_.view(to_qstring(view))->findChild<QLabel*>(u"hint"_s)->text();
  }

  bool names(const char* file) {
    const auto& source = find<QLabel>("timeline_source");
    return source.isVisible() && source.text().contains(to_qstring(file));
  }

  const std::vector<TimelineOrigin> predicted_ = {TimelineOrigin::Predicted};
  const std::vector<TimelineOrigin> measured_ = {TimelineOrigin::Measured};
  const std::vector<TimelineOrigin> both_ = {TimelineOrigin::Predicted, TimelineOrigin::Measured};
};

// A field of the timeline is narrower than the sentence that says what is wrong with its text.
TEST_F(ShownStepTest, WhatIsWrongInAQueryStandsWholeAmongTheMessages) {
  const auto field = [this](const QString& name) -> QLineEdit& {
    for (QLineEdit* each : window_.view(u"timeline"_s)->findChildren<QLineEdit*>())
      if (each->accessibleName() == name) return *each;
    throw std::runtime_error("no such field");
  };
  QLineEdit &filter = field(u"Filter of ops"_s), &search = field(u"Search for ops"_s);
  type(filter, u"colour=red"_s, Qt::Key_End);
  EXPECT_THAT(said(), Says("Timeline, filter: “colour” is not a field; fields are name, kind"));
  type(search, u"layer=x"_s, Qt::Key_End);
  EXPECT_THAT(said(), Says("Timeline, find: “x” is no number"));
  type(search, u"qkv"_s, Qt::Key_End);
  EXPECT_THAT(said(), Not(Says("find:")));
  EXPECT_THAT(said(), Says("“colour” is not a field"));
  type(filter, u"layer=0"_s, Qt::Key_End);
  EXPECT_THAT(said(), Not(Says("Timeline, ")));
}

// None of them says that the plan lacks what is being worked on.
TEST_F(ShownStepTest, AStepThatIsBeingSimulatedIsAwaited) {
  Scenario large{load_model("llama3-70b"), load_cluster("dgx-h100"), load_stack("megatron-core"),
                 Plan()};
  large.plan.tp = large.plan.pp = 8;
  large.plan.global_batch = 512;
  large.plan.seq_len = 2048;
  show(large);
  for (const char* view : {"timeline", "topology", "schedule"}) {
    window_.raise_view(to_qstring(view));
    EXPECT_TRUE(wait_for([&] { return hint_of(view).contains(u"Simulating a step"_s); })) << view;
  }
  show_plans();
  EXPECT_EQ(origins(), predicted_);
}

TEST_F(ShownStepTest, TheStepOfARunWithoutItsPlanStandsAlone) {
  drop({write_run("of-somebody")});
  EXPECT_EQ(origins(), measured_);
  EXPECT_TRUE(names("of-somebody"));
  show(small_set()->scenario(3));  // The search has found a better plan.
  EXPECT_EQ(origins(), measured_);
  QTest::mouseClick(&find<QToolButton>("timeline_back"), Qt::LeftButton);
  EXPECT_EQ(origins(), predicted_);
  // Reading again brings nothing back that was left.
  trigger("file.reload");
  EXPECT_EQ(origins(), predicted_);
  EXPECT_FALSE(find<QLabel>("timeline_source").isVisible());
}

// A step may have millions of ops, which nobody will see again.
TEST_F(ShownStepTest, TheStepOfAFormerScenarioIsDropped) {
  show(small_set()->scenario(3));
  EXPECT_EQ(origins(), predicted_);
  const std::weak_ptr<const Timeline> former = timelines().front();
  window_.raise_view(u"why"_s);
  window_.selection().show(small_set());
  ASSERT_TRUE(is_idle());
  EXPECT_TRUE(former.expired());
}

TEST_F(ShownStepTest, ReadingAgainLeavesTheStepThatIsShown) {
  const QString run = write_run("of-somebody"), file = write_step("step.json");
  drop({run});
  trigger("file.reload");
  EXPECT_EQ(origins(), measured_);
  drop({file});
  EXPECT_EQ(origins(), predicted_);
  trigger("file.reload");
  EXPECT_EQ(origins(), predicted_);
  EXPECT_TRUE(names("step.json"));
  // The window shows what was opened last; of files opened together, it shows the one named for it.
  drop({run});
  EXPECT_TRUE(names("of-somebody"));
  trigger("file.reload");
  EXPECT_EQ(origins(), measured_);
  drop({file, run});
  EXPECT_EQ(origins(), predicted_);
  EXPECT_TRUE(names("step.json"));
}

TEST_F(ShownStepTest, ARunLeavesTheStepOfTheOneBefore) {
  drop({write_run("of-somebody")});
  drop({write_run("of-mine", small_set()->scenario(3))});
  EXPECT_EQ(origins(), both_);
  EXPECT_FALSE(find<QLabel>("timeline_source").isVisible());
}

TEST_F(ShownStepTest, AFileIsNamedAndTheChosenPlanIsAClickAway) {
  EXPECT_FALSE(find<QLabel>("timeline_source").isVisible());
  drop({write_step("a<b.json")});
  EXPECT_TRUE(names("a<b.json"));
  for (const char* view : {"topology", "schedule"}) {
    EXPECT_THAT(hint_of(view), Says("a&lt;b.json"));
    EXPECT_THAT(hint_of(view), Not(Says("Choose a plan")));
  }
  QTest::mouseClick(&find<QToolButton>("timeline_back"), Qt::LeftButton);
  EXPECT_EQ(origins(), predicted_);
  EXPECT_NE(window_.findChild<TimelineView*>()->canvas().tracks().all_spans(),
            gui::fixtures::small_step().timeline->spans.size());
  EXPECT_FALSE(find<QLabel>("timeline_source").isVisible());
  EXPECT_THAT(hint_of("schedule"), Not(Says("a&lt;b.json")));
  trigger("file.reload");  // The file is closed.
  EXPECT_TRUE(said().contains(u"No file is open"_s));
}

TEST_F(ShownStepTest, AMeasurementAndAPredictionOfFilesAreBothNamed) {
  const auto step = gui::fixtures::measured(*gui::fixtures::small_step().timeline, 2.0);
  drop({write("real.json", to_json(*step).dump()), write_step("step.json")});
  EXPECT_EQ(origins(), both_);
  EXPECT_TRUE(names("real.json (measured)") && names("step.json (predicted)"));
}

TEST_F(ShownStepTest, AMeasuredStepComesBackWithItsPlan) {
  const Scenario trained = small_set()->scenario(3);
  drop({write_run("run", trained)});
  EXPECT_EQ(origins(), both_);
  show_plans();
  window_.selection().choose(0);
  EXPECT_EQ(origins(), predicted_);
  window_.selection().choose(3);
  EXPECT_EQ(origins(), both_);
  // A file in between changes nothing about it.
  drop({write_step("step.json")});
  EXPECT_EQ(origins(), predicted_);
  QTest::mouseClick(&find<QToolButton>("timeline_back"), Qt::LeftButton);
  EXPECT_EQ(origins(), both_);

  // Calibration changes the profile of the plan, which stays the same plan; another model does not.
  Scenario calibrated = trained;
  calibrated.cluster.name += " (calibrated)";
  calibrated.cluster.accelerator.memory_bandwidth *= 0.5;
  calibrated.stack.name += " (calibrated)";
  show(calibrated);
  EXPECT_EQ(origins(), both_);
  Scenario other = trained;
  other.model.vocab += 1024;
  show(other);
  EXPECT_EQ(origins(), predicted_);
  show(trained);
  EXPECT_EQ(origins(), both_);
  // Run shows another one now.
  drop({write_run("of-somebody")});
  QTest::mouseClick(&find<QToolButton>("timeline_back"), Qt::LeftButton);
  EXPECT_EQ(origins(), predicted_);
}

TEST_F(ShownStepTest, APlanThatIsChosenAgainStaysWhileAnotherOnesStepIsPredicted) {
  EXPECT_EQ(origins(), predicted_);
  const auto shown = timelines();
  window_.selection().choose(1);
  ASSERT_TRUE(window_.is_busy());
  window_.selection().choose(0);
  EXPECT_EQ(origins(), predicted_);
  EXPECT_EQ(timelines(), shown);
}

TEST_F(ShownStepTest, APredictionIsNotBegunAnewWithEachSetOfASearch) {
  EXPECT_EQ(origins(), predicted_);
  const auto before = timelines();
  Scenario large = small_set()->scenario(0);
  large.plan.global_batch *= 128;  // Its prediction lasts until the next set.
  const auto set = std::make_shared<const PlanSet>(plan_set_of(large, u"a search"_s));
  EXPECT_TRUE(wait_for([&] {
    window_.selection().show(set);
    return !timelines().empty() && timelines() != before;
  }));
}

}  // namespace
}  // namespace shardwright::gui
