#include "gui/views/scenario_view.hpp"

#include <QAbstractItemView>
#include <QAbstractSpinBox>
#include <QClipboard>
#include <QComboBox>
#include <QCompleter>
#include <QDoubleSpinBox>
#include <QGuiApplication>
#include <QLabel>
#include <QLineEdit>
#include <QScrollArea>
#include <QScrollBar>
#include <QSpinBox>
#include <QTextBoundaryFinder>
#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/spec/cluster_json.hpp"
#include "gui/models/chosen_request.hpp"
#include "gui/models/scenario_tips.hpp"
#include "tests/gui/painted_view_test.hpp"
#include "tests/gui/tiny_run.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

class ScenarioViewTest : public WindowTest {};

TEST_F(ScenarioViewTest, TypingIntoAFieldPlansAgainAndUndoTakesItBack) {
  window_.document().reset(small_choice());
  auto& gpus = find<QSpinBox>("gpus");
  type(gpus, u"4"_s, Qt::Key_Tab);
  EXPECT_EQ(window_.document().choice().gpus, 4);
  ASSERT_TRUE(wait_for(
      [&] { return window_.selection().set() && window_.selection().set()->request.gpus == 4; }));
  gpus.setFocus();
  QTest::keyClick(&gpus, Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(window_.document().choice().gpus, 8);
  EXPECT_EQ(gpus.value(), 8);
  QTest::keyClick(&gpus, Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
  EXPECT_EQ(gpus.value(), 4);
}

// The digits alone are numbers too: they are neither planned for nor rewritten. Letters of
// thousands are those that commands read.
TEST_F(ScenarioViewTest, ATypedNumberIsTakenWholeWhenItsFieldIsLeft) {
  struct Count {
    const char* field;
    std::int64_t ScenarioChoice::*member;
  };
  for (const Count& count : {Count{"gpus", &ScenarioChoice::gpus},
                             {"global_batch", &ScenarioChoice::global_batch},
                             {"seq_len", &ScenarioChoice::seq_len}}) {
    for (const QString& typed : {u"16384"_s, u"16k"_s, u"16 K"_s, u"16,384"_s}) {
      for (const Qt::Key end : {Qt::Key_Return, Qt::Key_Tab}) {
        window_.document().reset(small_choice());
        auto& box = find<QSpinBox>(count.field);
        box.setFocus();
        box.selectAll();
        QTest::keyClicks(&box, typed);
        EXPECT_EQ(window_.document().choice(), small_choice()) << count.field;
        QTest::keyClick(&box, end);
        EXPECT_EQ(window_.document().choice().*count.member, 16384)
            << count.field << " " << qPrintable(typed);
      }
    }
  }
}

TEST_F(ScenarioViewTest, ANumberBeyondItsFieldLeavesTheLastOne) {
  window_.document().reset(small_choice());
  auto& box = find<QSpinBox>("seq_len");
  type(box, u"900T"_s, Qt::Key_Tab);
  EXPECT_EQ(window_.document().choice(), small_choice());
  EXPECT_EQ(box.value(), small_choice().seq_len);
}

// Enter takes the number and leaves its digits, and with them the cursor, where they were.
TEST_F(ScenarioViewTest, SeparatorsOfThousandsComeWhenTheFieldIsLeft) {
  window_.document().reset(small_choice());
  auto& gpus = find<QSpinBox>("gpus");
  auto* line = gpus.findChild<QLineEdit*>();
  type(gpus, u"1638"_s, Qt::Key_Return);
  EXPECT_EQ(gpus.text(), u"1638"_s);
  line->setCursorPosition(2);
  QTest::keyClicks(&gpus, u"54"_s);
  QTest::keyClick(&gpus, Qt::Key_Return);
  EXPECT_EQ(gpus.text(), u"165438"_s);
  QGuiApplication::clipboard()->setText(u"1,024"_s);
  QTest::keyClick(&gpus, Qt::Key_A, Qt::ControlModifier);
  QTest::keyClick(&gpus, Qt::Key_V, Qt::ControlModifier);
  QTest::keyClick(&gpus, Qt::Key_Tab);
  EXPECT_EQ(window_.document().choice().gpus, 1024);
  EXPECT_EQ(gpus.text(), u"1,024"_s);
}

// A file that opens or a probe that ends changes the scenario while the user types.
TEST_F(ScenarioViewTest, AFieldThatIsTypedIntoIsNotRewritten) {
  struct Typed {
    const char* field;
    const char* begin;
    const char* rest;
    std::function<void(ScenarioChoice&)> taken;
  };
  for (const Typed& typed :
       {Typed{"gpus", "163", "84", [](ScenarioChoice& c) { c.gpus = 16384; }},
        {"max_memory", "0", ".5", [](ScenarioChoice& c) { c.max_memory_gb = 0.5; }},
        {"what_if_0", "1", "50", [](ScenarioChoice& c) { c.what_if[0] = 150; }},
        {"model", "llama3.2-", "3b", [](ScenarioChoice& c) { c.model = "llama3.2-3b"; }},
        {"constraints", "tp=", "16", [](ScenarioChoice& c) { c.constraints = "tp=16"; }}}) {
    window_.document().reset(small_choice());
    window_.activateWindow();  // A list of completions took its place.
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window_));
    auto& field = find<QWidget>(typed.field);
    field.setFocus();
    QTest::keyClick(&field, Qt::Key_A, Qt::ControlModifier);
    QTest::keyClicks(&field, to_qstring(typed.begin));
    ScenarioChoice expected = small_choice();
    expected.seq_len = 4096;
    window_.document().replace(u"another sequence length"_s, expected);
    QTest::keyClicks(&field, to_qstring(typed.rest));
    EXPECT_EQ(window_.document().choice(), expected) << typed.field;
    QTest::keyClick(&field, Qt::Key_Return);
    typed.taken(expected);
    EXPECT_EQ(window_.document().choice(), expected) << typed.field;
  }
}

TEST_F(ScenarioViewTest, ANumberThatIsBeingTypedIsUndoneInItsField) {
  window_.document().reset(small_choice());
  ScenarioChoice other = small_choice();
  other.seq_len = 4096;
  window_.document().replace(u"another sequence length"_s, other);
  auto& gpus = find<QSpinBox>("gpus");
  gpus.setFocus();
  gpus.selectAll();
  QTest::keyClicks(&gpus, u"16"_s);
  QTest::keyClick(&gpus, Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(window_.document().choice(), other);
  EXPECT_NE(gpus.text(), u"16"_s);
}

TEST_F(ScenarioViewTest, ASearchTakesTheNumberThatIsBeingTyped) {
  window_.document().reset(small_choice());
  auto& gpus = find<QSpinBox>("gpus");
  gpus.setFocus();
  gpus.selectAll();
  QTest::keyClicks(&gpus, u"4"_s);
  trigger("plan.search");
  EXPECT_EQ(window_.document().choice().gpus, 4);
  EXPECT_TRUE(gpus.hasFocus());
}

TEST_F(ScenarioViewTest, StepsGoOnFromTheTypedNumber) {
  window_.document().reset(small_choice());
  auto& gpus = find<QSpinBox>("gpus");
  type(gpus, u"100"_s, Qt::Key_Up);
  EXPECT_EQ(window_.document().choice().gpus, 128);
}

// `plan --max-memory 0.5GB` takes the same text.
TEST_F(ScenarioViewTest, AMemoryLimitIsTakenAsItIsTyped) {
  ScenarioChoice choice = small_choice();
  choice.max_memory_gb = 70.0;
  window_.document().reset(choice);
  auto& limit = find<QDoubleSpinBox>("max_memory");
  struct Typed {
    const char* text;
    Bytes bytes;
    const char* shown;
  };
  for (const Typed& typed : {Typed{"0.5", Bytes(500'000'000), "0.5 GB"},
                             {"70.5", Bytes(70'500'000'000), "70.5 GB"},
                             {"9.87", Bytes(9'870'000'000), "9.87 GB"},
                             {"2.50", Bytes(2'500'000'000), "2.5 GB"},
                             {"0.000000001", Bytes(1), "0.000000001 GB"},
                             {"80", Bytes(80'000'000'000), "80 GB"},
                             {"0", Bytes(), "95 % sure to fit"}}) {
    type(limit, to_qstring(typed.text), Qt::Key_Tab);
    EXPECT_EQ(limit.text(), to_qstring(typed.shown));
    EXPECT_DOUBLE_EQ(load_request(window_.document().choice()).max_memory.value(),
                     typed.bytes.value())
        << typed.text;
  }
}

// The word that the field shows is one that it takes.
TEST_F(ScenarioViewTest, AnOpenBatchIsTypedAsItIsShown) {
  auto& batch = find<QSpinBox>("global_batch");
  for (const char* word : {"auto", "AUTO"}) {
    window_.document().reset(small_choice());
    type(batch, to_qstring(word), Qt::Key_Tab);
    EXPECT_EQ(batch.text(), u"auto"_s);
    EXPECT_EQ(window_.document().choice().global_batch, 0) << word;
  }
  type(batch, u"64"_s, Qt::Key_Return);
  EXPECT_EQ(window_.document().choice().global_batch, 64);
  type(batch, u"au"_s, Qt::Key_Tab);  // The word is incomplete.
  EXPECT_EQ(window_.document().choice().global_batch, 64);
  EXPECT_EQ(batch.text(), u"64 sequences"_s);
  // Nor is it a word of another field.
  auto& gpus = find<QSpinBox>("gpus");
  type(gpus, u"auto"_s, Qt::Key_Tab);
  EXPECT_EQ(window_.document().choice().gpus, small_choice().gpus);
}

TEST_F(ScenarioViewTest, APartOfAGigabyteLimitsTheSearch) {
  ScenarioChoice choice = small_choice();
  choice.max_memory_gb = 0.5;
  window_.document().reset(choice);
  ASSERT_TRUE(has_plans());
  EXPECT_TRUE(window_.selection().set()->plans.empty());
  EXPECT_TRUE(window_.selection().set()->infeasible.has_value());
  const TextTable table = qobject_cast<View*>(window_.view(u"scenario"_s))->table();
  EXPECT_TRUE(std::any_of(table.rows.begin(), table.rows.end(),
                          [](const QStringList& row) { return row.last() == u"0.5"_s; }));
}

// "NVLink 4 450 GB/s" would read as four thousand.
TEST_F(ScenarioViewTest, TheFactsOfAMachineKeepNumbersApartAndUnitsWhole) {
  const QString facts = machine_facts(load_cluster("dgx-h100"));
  const qsizetype at = facts.indexOf(u" at 450"_s);
  ASSERT_GT(at, 0) << qPrintable(facts);
  const qsizetype end = facts.indexOf(u',', at);
  QTextBoundaryFinder lines(QTextBoundaryFinder::Line, facts);
  lines.setPosition(at + 4);
  EXPECT_GE(lines.toNextBoundary(), end) << qPrintable(facts);
}

// Fields that nobody types into start at their first character too.
TEST_F(ScenarioViewTest, ConstraintsThatAreTakenOverAreSeenFromTheirBegin) {
  ScenarioChoice choice = small_choice();
  choice.constraints = "schedule=1f1b; zero=1,3; not tp=1; not pp=3; not cp=16";
  window_.document().reset(choice);
  auto& constraints = find<QLineEdit>("constraints");
  EXPECT_EQ(constraints.cursorPosition(), 0);
  constraints.setFocus();
  QTest::keyClick(&constraints, Qt::Key_End);
  QTest::keyClicks(&constraints, u"8"_s);
  EXPECT_EQ(constraints.cursorPosition(), constraints.text().size());
}

TEST_F(ScenarioViewTest, OneOfAUnitIsSingular) {
  auto& batch = find<QSpinBox>("global_batch");
  auto& tokens = find<QSpinBox>("seq_len");
  ScenarioChoice choice = small_choice();
  choice.global_batch = choice.seq_len = 1;
  window_.document().reset(choice);
  EXPECT_EQ(batch.text(), u"1 sequence"_s);
  EXPECT_EQ(tokens.text(), u"1 token"_s);
  type(tokens, u"12"_s, Qt::Key_Return);  // 12 replaces the 1 in the field.
  EXPECT_EQ(window_.document().choice().seq_len, 12);
  EXPECT_EQ(tokens.text(), u"12 tokens"_s);
  batch.stepDown();
  EXPECT_EQ(batch.text(), u"auto"_s);
}

TEST_F(ScenarioViewTest, UndoWorksWithTheFocusInEachKindOfField) {
  window_.document().reset(small_choice());
  auto& constraints = find<QLineEdit>("constraints");
  type(constraints, u"tp=1"_s, Qt::Key_Return);
  ASSERT_EQ(window_.document().choice().constraints, "tp=1");
  QTest::keyClick(&constraints, Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(window_.document().choice(), small_choice());

  auto& model = find<QComboBox>("model");
  model.setFocus();
  model.lineEdit()->selectAll();
  QTest::keyClicks(&model, u"llama3-8b"_s);
  // The scenario takes the text when the focus leaves the field; before, the field undoes its text.
  QTest::keyClick(&model, Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(window_.document().choice(), small_choice());
  type(model, u"llama3-8b"_s, Qt::Key_Return);
  ASSERT_EQ(window_.document().choice().model, "llama3-8b");
  QTest::keyClick(&model, Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(window_.document().choice(), small_choice());
}

TEST_F(ScenarioViewTest, APartThatNobodyShipsIsNotShownAsAnother) {
  ScenarioChoice choice = small_choice();
  choice.accelerator = "of-an-old-session";
  window_.document().reset(choice);
  EXPECT_EQ(find<QComboBox>("accelerator").currentText(), u"of-an-old-session"_s);
}

TEST_F(ScenarioViewTest, TheScenariosDataHaveEveryField) {
  ScenarioChoice choice = small_choice();
  choice.accelerator = "h200";
  choice.what_if[1] = 150;
  window_.document().reset(choice);
  const TextTable table = qobject_cast<View*>(window_.view(u"scenario"_s))->table();
  QStringList values;
  for (const QStringList& row : table.rows) values.append(row.last());
  EXPECT_EQ(table.rows.size(), kEnumCount<Field> - 1 + kEnumCount<planner::Resource>);
  EXPECT_TRUE(values.contains(u"h200"_s));
  EXPECT_TRUE(values.contains(u"150"_s));
}

TEST_F(ScenarioViewTest, TheFieldOfGpusSaysWhatTheClusterHas) {
  const auto title_on = [&](const std::string& cluster) {
    ScenarioChoice choice = small_choice();
    choice.cluster = cluster;
    window_.document().reset(choice);
    for (const QLabel* label : window_.view(u"scenario"_s)->findChildren<QLabel*>())
      if (label->buddy() == &find<QWidget>("gpus")) return label->text();
    return QString();
  };
  EXPECT_EQ(title_on("dgx-h100"), u"GPUs"_s);
  EXPECT_EQ(title_on("tpu-v5p-torus"), u"TPUs"_s);
  EXPECT_THAT(window_.windowTitle(), Says("TPUs of tpu-v5p-torus"));
  const QString file = write("cpu.json", to_json(cpu_cluster()).dump());
  EXPECT_EQ(title_on(file.toStdString()), u"CPU ranks"_s);
}

TEST_F(ScenarioViewTest, ANameIsTakenFromTheListOfCompletions) {
  window_.document().reset(small_choice());
  auto& model = find<QComboBox>("model");
  model.setFocus();
  model.lineEdit()->selectAll();
  QTest::keyClicks(&model, u"llama3-8"_s);
  auto* list = model.completer()->popup();
  ASSERT_TRUE(list->isVisible());
  const QModelIndex first = list->model()->index(0, 0);
  ASSERT_EQ(first.data().toString(), u"llama3-8b"_s);
  QTest::mouseClick(list->viewport(), Qt::LeftButton, {}, list->visualRect(first).center());
  EXPECT_EQ(window_.document().choice().model, "llama3-8b");
}

TEST_F(ScenarioViewTest, NothingIsCutOffAtItsSide) {
  window_.resize(1000, 640);
  QCoreApplication::processEvents();
  const auto* area = window_.view(u"scenario"_s)->findChild<QScrollArea*>();
  EXPECT_LE(area->widget()->width(), area->viewport()->width());
}

TEST_F(ScenarioViewTest, TheStackOfAClustersFileIsOfferedAndTaken) {
  window_.document().reset(small_choice());
  ClusterSpec cluster = load_cluster("dgx-h100");
  cluster.name = "probed";
  cluster.stack = load_stack("shardwright");
  cluster.stack->name = "shardwright-cpu";
  drop({write("probed.json", to_json(cluster).dump())});
  auto& stack = find<QComboBox>("stack");
  EXPECT_EQ(stack.currentText(), u"shardwright-cpu (the cluster's own)"_s);
  ASSERT_TRUE(shows([&](const PlanSet& set) { return set.request.stack == cluster.stack; }));
  // The unchanged field keeps the short name, of which the list shows a longer form.
  stack.setFocus();
  QTest::keyClick(&stack, Qt::Key_Return);
  EXPECT_EQ(window_.document().choice().stack, "shardwright-cpu");

  auto& field = find<QComboBox>("cluster");
  type(field, u"dgx-h100"_s, Qt::Key_Return);
  EXPECT_EQ(window_.document().choice(), small_choice());
  EXPECT_EQ(stack.findData(u"shardwright-cpu"_s), -1);
}

void turn_wheel_over(QWidget& widget) {
  fixtures::turn_wheel(widget, QRectF(widget.rect()).center(), -1);
}

bool is_scrolled(const QWidget* widget) {
  while (widget != nullptr && qobject_cast<const QScrollArea*>(widget) == nullptr)
    widget = widget->parentWidget();
  return widget != nullptr;
}

TEST_F(ScenarioViewTest, TheWheelScrollsPastFields) {
  show_plans();
  window_.document().reset(small_choice());
  window_.setFocus();
  int fields = 0;
  for (auto* box : window_.findChildren<QComboBox*>()) {
    if (!is_scrolled(box)) continue;
    const int before = box->currentIndex();
    turn_wheel_over(*box);
    EXPECT_EQ(box->currentIndex(), before) << qPrintable(box->objectName());
    EXPECT_FALSE(box->focusPolicy() & Qt::WheelFocus & ~Qt::StrongFocus);
    ++fields;
  }
  for (auto* box : window_.findChildren<QAbstractSpinBox*>()) {
    if (!is_scrolled(box)) continue;
    const QString before = box->text();
    turn_wheel_over(*box);
    EXPECT_EQ(box->text(), before) << qPrintable(box->objectName());
    EXPECT_FALSE(box->focusPolicy() & Qt::WheelFocus & ~Qt::StrongFocus);
    ++fields;
  }
  EXPECT_GT(fields, 20);
  EXPECT_EQ(window_.document().choice(), small_choice());

  auto& batch = find<QSpinBox>("global_batch");
  batch.setFocus();
  turn_wheel_over(batch);
  EXPECT_LT(batch.value(), 32) << "the field with the focus takes it";
}

}  // namespace
}  // namespace shardwright::gui
