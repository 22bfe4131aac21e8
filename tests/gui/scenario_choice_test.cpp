#include "gui/models/scenario_choice.hpp"

#include <gtest/gtest.h>

#include <QSignalSpy>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "gui/models/scenario_document.hpp"
#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"
#include "tests/gui/small_scenario.hpp"

namespace shardwright::gui {
namespace {

std::vector<std::string> wrong_fields(const ScenarioChoice& choice) {
  std::vector<std::string> fields;
  try {
    load_request(choice);
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) fields.push_back(problem.where);
  }
  return fields;
}

TEST(ScenarioChoice, TheDefaultIsTheWorkedExample) {
  const planner::PlanRequest request = load_request(ScenarioChoice());
  EXPECT_EQ(request.model.name, "llama3-70b");
  EXPECT_EQ(request.cluster.accelerator.name, "h100-sxm");
  EXPECT_EQ(request.gpus, 512);
}

TEST(ScenarioChoice, NamesEachFieldThatIsWrong) {
  ScenarioChoice choice;
  choice.model = "lama3-70b";
  choice.stack = "megatron";
  choice.precision = "bf17";
  choice.constraints = "tp=8; not nonsense=3";
  const auto fields = wrong_fields(choice);
  for (const char* field : {"model", "precision", "constraints"})
    EXPECT_NE(std::find(fields.begin(), fields.end(), field), fields.end()) << field;
}

TEST(ScenarioChoice, AProblemOfThePlannerFindsItsField) {
  ScenarioChoice choice;
  choice.gpus = 0;
  const auto fields = wrong_fields(choice);
  ASSERT_FALSE(fields.empty());
  EXPECT_EQ(field_of(fields.front(), Field::Model), Field::Gpus);
  EXPECT_EQ(field_of("--global-batch", Field::Model), Field::GlobalBatch);
}

TEST(ScenarioChoice, WhatIfsAndPartsChangeTheCluster) {
  ScenarioChoice choice;
  const ClusterSpec before = load_cluster_of(choice);
  choice.what_if[static_cast<std::size_t>(planner::Resource::ScaleOutBandwidth)] = 200;
  choice.accelerator = "h200";
  const ClusterSpec after = load_cluster_of(choice);
  EXPECT_DOUBLE_EQ(after.node.nic.bandwidth.value(), 2.0 * before.node.nic.bandwidth.value());
  EXPECT_GT(after.accelerator.memory, before.accelerator.memory);
  EXPECT_NE(after.name, before.name);
}

TEST(ScenarioChoice, SurvivesASession) {
  ScenarioChoice choice = small_choice();
  choice.what_if[2] = 150;
  choice.max_memory_gb = 60.0;
  EXPECT_EQ(read_choice(to_json(choice)), choice);
}

// A session may be of another version, or damaged.
TEST(ScenarioChoice, TakesDefaultsForWhatASessionLacks) {
  EXPECT_EQ(read_choice(nlohmann::json()), ScenarioChoice());
  const auto odd = nlohmann::json::parse(
      R"({"model": 7, "gpus": "many", "what_if": [1, "x"], "future": {}, "seq_len": 4096})");
  const ScenarioChoice read = read_choice(odd);
  EXPECT_EQ(read.model, ScenarioChoice().model);
  EXPECT_EQ(read.seq_len, 4096);
}

TEST(ScenarioDocument, UndoesEachWhatIfAndWhatWasEditedLaterByItself) {
  ScenarioDocument document;
  ScenarioChoice next = document.choice();
  for (int resource = 0; resource < 3; ++resource) {
    next.what_if[static_cast<std::size_t>(resource)] = 150;
    document.edit(Field::WhatIf, next, resource);
  }
  EXPECT_EQ(document.undo_stack()->count(), 3);
  document.undo_stack()->undo();
  EXPECT_EQ(document.choice().what_if[1], 150);
  EXPECT_EQ(document.choice().what_if[2], 100);

  next = document.choice();
  next.gpus = 64;
  document.edit(Field::Gpus, next);
  QTest::qWait(ScenarioDocument::kTogetherMs + 200);
  next.gpus = 128;
  document.edit(Field::Gpus, next);
  document.undo_stack()->undo();
  EXPECT_EQ(document.choice().gpus, 64);
}

TEST(ScenarioChoice, AShippedScenarioIsNamed) {
  const Scenario scenario = small_set()->scenario(0);
  const auto choice = shipped_choice_of(scenario);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->model, "llama3.2-1b");
  EXPECT_EQ(choice->cluster, small_choice().cluster);
  EXPECT_EQ(choice->gpus, 8);
  Scenario own = scenario;
  own.cluster.node.nic.bandwidth *= 2.0;
  EXPECT_FALSE(shipped_choice_of(own));
  own = scenario;
  own.model.name = "of-my-own";
  EXPECT_FALSE(shipped_choice_of(own));
}

TEST(ScenarioDocument, UndoesEditsOfOneFieldTogether) {
  ScenarioDocument document;
  QSignalSpy changed(&document, &ScenarioDocument::changed);
  ScenarioChoice next = document.choice();
  for (const std::int64_t gpus : {6, 64, 640}) {
    next.gpus = gpus;
    document.edit(Field::Gpus, next);
  }
  next.seq_len = 4096;
  document.edit(Field::SeqLen, next);
  EXPECT_EQ(document.undo_stack()->count(), 2);
  EXPECT_EQ(changed.count(), 4);
  EXPECT_EQ(document.undo_stack()->undoText(), QStringLiteral("change of sequence"));
  document.undo_stack()->undo();
  EXPECT_EQ(document.undo_stack()->undoText(), QStringLiteral("change of GPUs"));
  EXPECT_EQ(document.choice().gpus, 640);
  document.undo_stack()->undo();
  EXPECT_EQ(document.choice(), ScenarioChoice());
  document.undo_stack()->redo();
  EXPECT_EQ(document.choice().gpus, 640);
}

bool names_source(const QString& tip) {
  constexpr std::array kConfidences = {Confidence::Datasheet, Confidence::Measured,
                                       Confidence::Fitted, Confidence::Derived,
                                       Confidence::Assumed};
  return std::any_of(kConfidences.begin(), kConfidences.end(), [&](Confidence confidence) {
    return tip.contains(QString::fromUtf8(name_of(confidence)) + QStringLiteral(": "));
  });
}

// Every field says what it means, in which unit and range, and where the figures behind it are
// from.
TEST(ScenarioTips, NameTheSourceOfWhatAChoiceStandsFor) {
  const ScenarioChoice choice;
  const ScenarioParts parts = load_parts(choice);
  ASSERT_TRUE(parts.model && parts.cluster && parts.stack);
  for (const Field field : {Field::Cluster, Field::Accelerator, Field::Node, Field::Fabric,
                            Field::Stack, Field::Gpus, Field::Precision, Field::MaxMemory}) {
    EXPECT_TRUE(names_source(tip_of(field, choice, parts)))
        << qPrintable(tip_of(field, choice, parts));
  }
  EXPECT_TRUE(tip_of(Field::Model, choice, parts).contains(to_qstring(parts.model->source)));
  EXPECT_TRUE(tip_of(Field::Precision, choice, parts).contains(QStringLiteral("989 TFLOP/s")));
  for (int i = 0; i < kResources; ++i) {
    const QString tip = tip_of(static_cast<planner::Resource>(i), parts);
    EXPECT_TRUE(tip.contains(QStringLiteral("100 % is")) && names_source(tip)) << qPrintable(tip);
  }
}

TEST(ScenarioTips, StayWithoutFiguresWhereAPartIsUnknown) {
  ScenarioChoice choice;
  choice.cluster = "no-such-cluster";
  const ScenarioParts parts = load_parts(choice);
  EXPECT_FALSE(parts.cluster);
  EXPECT_TRUE(tip_of(Field::Gpus, choice, parts).contains(QStringLiteral("Range")));
}

TEST(Text, MessagesNameFieldsAndNotOptions) {
  EXPECT_EQ(without_dashes(QStringLiteral("64 accelerators: --gpus 64 --global-batch 32")),
            QStringLiteral("64 accelerators: GPUs 64 global batch 32"));
  // What no field stands for is a command that can be typed.
  for (const char* command : {"shardwright run --timeline-steps", "plan or scale --json",
                              "--global-batches 32", "probe --ranks 2"})
    EXPECT_EQ(without_dashes(QString::fromUtf8(command)), QString::fromUtf8(command));
}

}  // namespace
}  // namespace shardwright::gui
