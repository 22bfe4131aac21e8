#include "gui/models/this_machine.hpp"

#include <QComboBox>
#include <QDir>
#include <csignal>
#include <nlohmann/json.hpp>

#include "core/spec/cluster_json.hpp"
#include "core/spec/this_machine.hpp"
#include "tests/gui/tiny_run.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

// The fixture has a cache of its own, which holds no profile yet.
class ThisMachineTest : public WindowTest {
 protected:
  void SetUp() override {
    qputenv("XDG_CACHE_HOME", folder_.filePath(u"cache"_s).toUtf8());
    ASSERT_TRUE(QDir(folder_.path()).mkpath(u"cache/shardwright"_s));
    WindowTest::SetUp();
  }
  void TearDown() override { qunsetenv("XDG_CACHE_HOME"); }

  void keep_profile() { write("cache/shardwright/here.json", to_json(two_cpu_ranks()).dump()); }
};

TEST_F(ThisMachineTest, HereInTheClusterFieldPlansForAllOfIt) {
  keep_profile();
  ScenarioChoice before = small_choice();
  before.model = "tiny-llama";
  before.constraints.clear();
  before.node = "dgx-h100";
  window_.document().reset(before);
  auto& cluster = find<QComboBox>("cluster");
  type(cluster, u"here"_s, Qt::Key_Return);
  const ScenarioChoice choice = window_.document().choice();
  EXPECT_EQ(choice.cluster, cached_profile().string());
  EXPECT_EQ(choice.node, "");
  EXPECT_EQ(choice.stack, "shardwright-cpu");
  EXPECT_EQ(choice.gpus, 2);
  EXPECT_EQ(choice.global_batch, 8);
  EXPECT_EQ(choice.precision, "fp32");
  EXPECT_LE(choice.seq_len, load_model("tiny-llama").max_seq_len);
  EXPECT_EQ(cluster.currentText(), to_qstring(cached_profile().string()));
  EXPECT_THAT(window_.windowTitle(), Says("tiny-llama on 2 ranks of this machine"));
  ASSERT_TRUE(shows([&](const PlanSet& set) {
    return set.complete && set.request.gpus == 2 && !set.plans.empty();
  }));
  window_.document().undo_stack()->undo();
  EXPECT_EQ(window_.document().choice(), before);
}

// Also from a window that a shell started in the background, where SIGINT is ignored.
TEST_F(ThisMachineTest, AProbeIsAnnouncedAndCanBeStopped) {
  const auto before = std::signal(SIGINT, SIG_IGN);
  window_.document().reset(small_choice());
  trigger("plan.here");
  EXPECT_TRUE(said().contains(u"Probing this machine"_s));
  QTest::qWait(300);
  EXPECT_EQ(window_.selection().set(), nullptr) << "a search would disturb the probe";
  click(u"Probing this machine"_s, "offer");
  ASSERT_TRUE(is_idle());
  EXPECT_EQ(said(), QString());
  EXPECT_FALSE(is_probed());
  EXPECT_EQ(window_.document().choice(), small_choice());
  ASSERT_NE(window_.selection().set(), nullptr);
  EXPECT_TRUE(window_.selection().set()->complete);
  std::signal(SIGINT, before);
}

TEST_F(ThisMachineTest, ADamagedProfileIsReported) {
  window_.document().reset(small_choice());
  write("cache/shardwright/here.json", "{\"schema\": 1}");
  trigger("plan.here");
  EXPECT_TRUE(said().contains(u"here.json"_s));
  EXPECT_EQ(window_.document().choice(), small_choice());
}

}  // namespace
}  // namespace shardwright::gui
