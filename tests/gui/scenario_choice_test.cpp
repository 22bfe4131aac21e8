#include "gui/models/scenario_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QSignalSpy>
#include <QTemporaryDir>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/base/error.hpp"
#include "core/spec/cluster_json.hpp"
#include "gui/models/chosen_request.hpp"
#include "gui/models/scenario_document.hpp"
#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"
#include "gui/models/written_file.hpp"
#include "gui/views/picture_export.hpp"
#include "tests/gui/small_scenario.hpp"
#include "tests/thrown.hpp"

namespace shardwright::gui {
namespace {

std::vector<std::string> wrong_fields(const ScenarioChoice& choice) {
  return problems_of([&choice] { load_request(choice); });
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
}

TEST(ScenarioChoice, WhatIfsAndPartsChangeTheCluster) {
  ScenarioChoice choice;
  const ClusterSpec before = load_cluster_of(choice);
  choice.what_if[planner::Resource::ScaleOutBandwidth] = 200;
  choice.accelerator = "h200";
  const ClusterSpec after = load_cluster_of(choice);
  EXPECT_DOUBLE_EQ(after.node.nic.bandwidth.value(), 2.0 * before.node.nic.bandwidth.value());
  EXPECT_GT(after.accelerator.memory, before.accelerator.memory);
  EXPECT_NE(after.name, before.name);
}

TEST(ScenarioChoice, SurvivesASession) {
  ScenarioChoice choice = small_choice();
  choice.what_if[2] = 150;
  choice.max_memory_gb = 60.25;
  std::vector<Problem> replaced;
  EXPECT_EQ(read_choice(to_json(choice), replaced), choice);
  EXPECT_TRUE(replaced.empty());
}

// A session may be of another version, or damaged.
TEST(ScenarioChoice, TakesDefaultsForWhatASessionLacks) {
  std::vector<Problem> replaced;
  EXPECT_EQ(read_choice(nlohmann::json(), replaced), ScenarioChoice());
  const auto odd = nlohmann::json::parse(
      R"({"model": 7, "gpus": "many", "what_if": [1, "x"], "future": {}, "seq_len": 4096})");
  const ScenarioChoice read = read_choice(odd, replaced);
  EXPECT_EQ(read.model, ScenarioChoice().model);
  EXPECT_EQ(read.seq_len, 4096);
  EXPECT_EQ(replaced.size(), 3U);
}

// These numbers exceed the fields, 32 bits or 64 bits, or are no whole numbers.
TEST(ScenarioChoice, TakesNothingFromASessionThatTheFieldsCannotShow) {
  for (const auto& [key, field, value] :
       {std::tuple{"global_batch", "global_batch", "99999999999999"},
        {"global_batch", "global_batch", "18446744073709551615"},
        {"seq_len", "seq_len", "-5"},
        {"gpus", "gpus", "10000000000"},
        {"gpus", "gpus", "1e10"},
        {"gpus", "gpus", "2.5"},
        {"max_memory_gb", "max_memory", "-1e300"},
        {"max_memory_gb", "max_memory", "1000000.5"},
        {"max_memory_gb", "max_memory", R"("60")"},
        {"what_if", "what_if", R"({"host speed": 4294967396})"},
        {"constraints", "constraints", R"("tp=8\u0000")"}}) {
    nlohmann::json document = to_json(small_choice());
    document[key] = nlohmann::json::parse(value);
    std::vector<Problem> replaced;
    const nlohmann::json read = to_json(read_choice(document, replaced));
    ASSERT_EQ(replaced.size(), 1U) << key << " " << value;
    EXPECT_EQ(replaced.front().where, field);
    EXPECT_EQ(read[key], nlohmann::json(to_json(ScenarioChoice()))[key]) << value;
    document.erase(key);
    nlohmann::json others = read;
    others.erase(key);
    EXPECT_EQ(others, document) << "only that one is replaced";
  }
}

// A file is read as strictly as any other, and named resources survive another order of them.
TEST(ScenarioChoice, AFileRefusesWhatItCannotMean) {
  ScenarioChoice choice = small_choice();
  choice.what_if[planner::Resource::HostSpeed] = 150;
  const nlohmann::json good = scenario_file(choice);
  EXPECT_EQ(good["what_if"], nlohmann::json({{"host speed", 150}}));
  EXPECT_EQ(read_scenario_file(good, "a.json"), choice);
  for (const auto& [change, where] :
       {std::pair{R"({"version": 2})", "/version"},
        {R"({"gpuss": 8})", "/gpuss"},
        {R"({"max_memory_gb": -1})", "Memory limit: found -1"},
        {R"({"what_if": [100]})", "What if: found [100]"},
        {R"({"what_if": {"host speed": -3}})", "What if: found host speed -3"},
        {R"({"what_if": {"host sped": 120}})", "/what_if/host sped"}}) {
    nlohmann::json bad = good;
    bad.merge_patch(nlohmann::json::parse(change));
    EXPECT_THAT([&] { read_scenario_file(bad, "a.json"); },
                testing::ThrowsMessage<InputError>(testing::HasSubstr(where)))
        << change;
  }
}

// Writes a cluster file whose stack is not part of the catalog.
std::string probed_cluster(const QTemporaryDir& folder) {
  ClusterSpec cluster = load_cluster("dgx-h100");
  cluster.name = "probed";
  cluster.stack = load_stack("shardwright");
  cluster.stack->name = "shardwright-cpu";
  const QString path = folder.filePath(u"probed.json"_s);
  write_text_file(path, to_qstring(to_json(cluster).dump()));
  return path.toStdString();
}

TEST(ScenarioChoice, AClustersOwnStackIsTakenWithIt) {
  const QTemporaryDir folder;
  const std::string file = probed_cluster(folder);
  const ScenarioChoice before = small_choice();
  ScenarioChoice choice = on_cluster(before, file);
  EXPECT_EQ(choice.stack, "shardwright-cpu");
  EXPECT_EQ(load_request(choice).stack, *load_cluster(file).stack);
  EXPECT_TRUE(load_parts(choice).stack);
  EXPECT_EQ(on_cluster(choice, before.cluster), before);

  choice.stack = "pytorch-fsdp2";
  EXPECT_EQ(on_cluster(choice, file).stack, "pytorch-fsdp2") << "chosen since";
  EXPECT_EQ(on_cluster(choice, before.cluster).stack, "pytorch-fsdp2");
}

TEST(ScenarioChoice, TheScenarioOfARunKeepsTheStackOfItsCluster) {
  const QTemporaryDir folder;
  const std::string file = probed_cluster(folder);
  Scenario scenario = small_set()->scenario(0);
  scenario.cluster = load_cluster(file);
  scenario.stack = *scenario.cluster.stack;
  const planner::PlanRequest request = load_request(choice_of(scenario, file));
  EXPECT_EQ(request.stack, scenario.stack);
  EXPECT_EQ(request.cluster, scenario.cluster);
}

TEST(ScenarioChoice, EveryWrongTermOfTheConstraintsIsReported) {
  ScenarioChoice choice;
  choice.constraints = "zzz=3; tp=8; ;;not ; pp=x; not yyy=1; ...";
  EXPECT_EQ(wrong_fields(choice), std::vector<std::string>(5, "constraints"));
}

TEST(ScenarioChoice, ARemedyDropsOnlyTheConstraintThatItNames) {
  using planner::RemedyField;
  ScenarioChoice choice;
  choice.constraints = "not tp=2;pp=4 ; not  tp=8";
  const auto with = [&](RemedyField field, const char* constraint) {
    const auto changed = with_remedies(
        choice, {{field, planner::parse_constraint(constraint, "test")}}, gigabytes(80.0));
    return changed ? changed->constraints : "nothing";
  };
  EXPECT_EQ(with(RemedyField::NotForbidden, "tp=2"), "pp=4; not tp=8");
  EXPECT_EQ(with(RemedyField::NotForbidden, "tp=8"), "not tp=2; pp=4");
  EXPECT_EQ(with(RemedyField::NotForbidden, "tp=4"), "nothing");
  EXPECT_EQ(with(RemedyField::NotFixed, "pp=4"), "not tp=2; not tp=8");
  EXPECT_EQ(with(RemedyField::Fixed, "pp=2"), "not tp=2; not tp=8; pp=2");
  EXPECT_EQ(with(RemedyField::Fixed, "tp=2"), "nothing");
  EXPECT_EQ(with(RemedyField::Fixed, "offload_optimizer=host"),
            "not tp=2; pp=4; not tp=8; offload_optimizer=host");
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
  EXPECT_EQ(document.undo_stack()->undoText(), u"change of sequence"_s);
  document.undo_stack()->undo();
  EXPECT_EQ(document.undo_stack()->undoText(), u"change of GPUs"_s);
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
    return tip.contains(to_qstring(name_of(confidence)) + u": "_s);
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
  EXPECT_TRUE(tip_of(Field::Precision, choice, parts).contains(u"989 TFLOP/s"_s));
  for (const planner::Resource resource : enumerators<planner::Resource>()) {
    const QString tip = tip_of(resource, parts);
    EXPECT_TRUE(tip.contains(u"100 % is"_s) && names_source(tip)) << qPrintable(tip);
  }
}

TEST(ScenarioTips, StayWithoutFiguresWhereAPartIsUnknown) {
  ScenarioChoice choice;
  choice.cluster = "no-such-cluster";
  const ScenarioParts parts = load_parts(choice);
  EXPECT_FALSE(parts.cluster);
  EXPECT_TRUE(tip_of(Field::Gpus, choice, parts).contains(u"Range"_s));
}

}  // namespace
}  // namespace shardwright::gui
