// The problems of a scenario, each below its field.
#include <QApplication>
#include <QComboBox>
#include <QCompleter>
#include <QLabel>
#include <QLineEdit>
#include <nlohmann/json.hpp>

#include "core/spec/cluster_json.hpp"
#include "gui/style/palette.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

class ScenarioProblemsTest : public WindowTest {};

// Returns true if only this label shows the text, with room for 95 % sure to fit.
bool shows_problem(const QLabel& problem, const QString& text) {
  return problem.isVisible() && problem.text().contains(text) &&
         problem.height() >= problem.heightForWidth(problem.width());
}

TEST_F(ScenarioProblemsTest, AWrongFieldShowsItsProblemBelow) {
  struct Wrong {
    const char* field;
    std::string ScenarioChoice::*member;
    const char* value;
    const char* text;
  };
  const auto& model = find<QComboBox>("model");
  const int height = model.height();
  for (const Wrong& wrong :
       {Wrong{"model", &ScenarioChoice::model, "nosuchmodel", "no model of this name"},
        {"cluster", &ScenarioChoice::cluster, "here", "no cluster of this name"},
        {"stack", &ScenarioChoice::stack, "nosuchstack", "no stack of this name"},
        {"accelerator", &ScenarioChoice::accelerator, "nosuch", "no accelerator of this name"},
        {"node", &ScenarioChoice::node, "nosuchnode", "nosuchnode"},
        {"fabric", &ScenarioChoice::fabric, "nosuchfabric", "nosuchfabric"},
        {"precision", &ScenarioChoice::precision, "bf17", "bf17"},
        {"objective", &ScenarioChoice::objective, "nosuchgoal", "nosuchgoal"},
        {"constraints", &ScenarioChoice::constraints, "zeeero=3", "zeeero"}}) {
    ScenarioChoice choice = small_choice();
    choice.*wrong.member = wrong.value;
    window_.document().reset(choice);
    const auto& problem = find<QLabel>(QByteArray("problem_").append(wrong.field).constData());
    EXPECT_TRUE(wait_for([&] { return shows_problem(problem, to_qstring(wrong.text)); }))
        << wrong.field << ", " << problem.height() << " high: " << qPrintable(problem.text());
    EXPECT_EQ(model.height(), height) << "with a wrong " << wrong.field;
  }
}

TEST_F(ScenarioProblemsTest, AProblemStaysUntilItsFieldIsChanged) {
  window_.document().reset(small_choice());
  auto& model = find<QComboBox>("model");
  auto& problem = find<QLabel>("problem_model");
  const auto type_name = [&](const char* name, Qt::Key key) {
    // The list of completions takes the place of the active window on this platform, and nothing
    // is left in a window that is not active.
    window_.activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window_));
    model.setFocus();
    model.lineEdit()->selectAll();
    QTest::keyClicks(&model, to_qstring(name));
    model.completer()->popup()->hide();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window_));
    QTest::keyClick(&model, key);
  };
  for (const auto key : {Qt::Key_Return, Qt::Key_Tab}) {
    type_name("nosuchmodel", key);
    EXPECT_EQ(window_.document().choice().model, "nosuchmodel");
    ASSERT_TRUE(wait_for([&] { return shows_problem(problem, u"no model of this name"_s); }));
    // The focus leaves the field a second time without a change.
    model.setFocus();
    QTest::keyClick(&model, Qt::Key_Return);
    find<QLineEdit>("constraints").setFocus();
    EXPECT_TRUE(shows_problem(problem, u"no model of this name"_s));
    type_name("llama3.2-1b", key);
    EXPECT_EQ(window_.document().choice().model, "llama3.2-1b");
    EXPECT_FALSE(problem.isVisible());
  }
}

// The plans of this scenario take seconds, its problem goes before.
TEST_F(ScenarioProblemsTest, AProblemGoesAsASearchBeginsAndNotWithItsPlans) {
  ScenarioChoice choice;
  choice.model = "deepseek-v3";
  choice.cluster = "h800-ib";
  choice.gpus = 1'000'000;
  window_.document().reset(choice);
  window_.begin({});
  auto& problem = find<QLabel>("problem_gpus");
  ASSERT_TRUE(wait_for([&] { return shows_problem(problem, u"expected at most"_s); }));
  choice.gpus = 2048;
  window_.document().replace(u"GPUs"_s, choice);
  ASSERT_TRUE(wait_for([&] { return !problem.isVisible(); }));
  EXPECT_EQ(window_.selection().set(), nullptr);
}

TEST_F(ScenarioProblemsTest, ANameThatWasProbablyMeantIsTakenByAClick) {
  ScenarioChoice choice = small_choice();
  const std::string meant = choice.model;
  choice.model += "x";
  window_.document().reset(choice);
  auto& problem = find<QLabel>("problem_model");
  ASSERT_TRUE(wait_for([&] { return shows_problem(problem, to_qstring(meant) + u"</a>"_s); }));
  for (int y = 4; y < problem.height(); y += 6) {
    for (int x = 4; x < problem.width() && problem.isVisible(); x += 6)
      QTest::mouseClick(&problem, Qt::LeftButton, {}, {x, y});
  }
  EXPECT_EQ(window_.document().choice().model, meant);
  EXPECT_FALSE(problem.isVisible());
}

TEST_F(ScenarioProblemsTest, AsManyGpusAsTheClusterHasAreTakenByAClick) {
  ClusterSpec one_node = load_cluster("dgx-h100");
  one_node.nodes = 1;
  ScenarioChoice choice = small_choice();
  choice.cluster = write("one_node.json", to_json(one_node).dump()).toStdString();
  choice.gpus = 1000;
  window_.document().reset(choice);
  auto& problem = find<QLabel>("problem_gpus");
  ASSERT_TRUE(wait_for([&] { return shows_problem(problem, u"</a> accelerators"_s); }))
      << qPrintable(problem.text());
  for (int y = 4; y < problem.height(); y += 6) {
    for (int x = 4; x < problem.width() && problem.isVisible(); x += 6)
      QTest::mouseClick(&problem, Qt::LeftButton, {}, {x, y});
  }
  EXPECT_EQ(window_.document().choice().gpus, 8);
  EXPECT_FALSE(problem.isVisible());
}

TEST_F(ScenarioProblemsTest, ProblemsAreLegibleInLightAndDark) {
  const QPalette before = QApplication::palette();
  ScenarioChoice choice = small_choice();
  choice.model = "nosuchmodel";
  window_.document().reset(choice);
  const auto& problem = find<QLabel>("problem_model");
  ASSERT_TRUE(wait_for([&] { return problem.isVisible(); }));
  for (const QPalette& palette : {dark_palette(), light_palette()}) {
    QApplication::setPalette(palette);
    QCoreApplication::processEvents();
    EXPECT_EQ(problem.palette().color(QPalette::WindowText), colours_for(palette).bad);
  }
  QApplication::setPalette(before);
}

TEST_F(ScenarioProblemsTest, NamesThatNoFieldListsAreShownInFull) {
  ScenarioChoice choice = small_choice();
  choice.constraints = "zzz=3; not ; q; w; e; r";
  window_.document().reset(choice);
  const auto& problem = find<QLabel>("problem_constraints");
  ASSERT_TRUE(wait_for([&] { return shows_problem(problem, u"zzz"_s); }));
  for (const char* text : {"micro_batch", "recompute", "\"not\", \"q\", \"w\"", "and 2 more"})
    EXPECT_THAT(problem.text(), Says(text)) << text;
}

}  // namespace
}  // namespace shardwright::gui
