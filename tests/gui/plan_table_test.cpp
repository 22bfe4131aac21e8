#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <algorithm>

#include "gui/models/plan_table_model.hpp"
#include "gui/models/table_text.hpp"
#include "tests/gui/small_scenario.hpp"

namespace shardwright::gui {
namespace {

int column(const char* id) {
  return figure_index(to_qstring(id));
}

// Returns plans that differ in their figures only.
PlanSetPointer many_plans(std::size_t count) {
  auto set = std::make_shared<PlanSet>();
  set->request = small_request();
  const planner::PlanCandidate& pattern = small_set()->plans.front();
  set->plans.assign(count, pattern);
  for (std::size_t i = 0; i < count; ++i) {
    const double share = static_cast<double>((i * 7919) % count) / static_cast<double>(count);
    set->plans[i].result.step = Seconds(1.0 + share);
    set->plans[i].plan.tp = 1 << (i % 4);
  }
  set->on_front.assign(count, false);
  return set;
}

class PlanTable : public testing::Test {
 protected:
  PlanTable() { table_.show(small_set()); }

  PlanTableModel table_;
};

TEST_F(PlanTable, KeepsTheRulesOfItemModels) {
  PlanTableModel table;
  const QAbstractItemModelTester rules(&table,
                                       QAbstractItemModelTester::FailureReportingMode::Fatal);
  table.show(small_set());
  table.sort(column("memory"));
  EXPECT_EQ(table.set_terms(u"tp=1"_s), QString());
  table.show(nullptr);
  EXPECT_EQ(table.rowCount(), 0);
}

TEST_F(PlanTable, SortsByNumbersNotByTheirText) {
  table_.sort(column("memory"), Qt::AscendingOrder);
  double before = 0.0;
  for (int row = 0; row < table_.rowCount(); ++row) {
    const std::size_t plan = table_.plan_of(table_.index(row, 0));
    const double memory = small_set()->plans[plan].result.memory().peak.value();
    EXPECT_GE(memory, before);
    before = memory;
  }
  EXPECT_GT(before, 0.0);
}

TEST_F(PlanTable, TermsFilterTogetherAndTurnRound) {
  const auto count = [&](const char* terms) {
    EXPECT_EQ(table_.set_terms(to_qstring(terms)), QString()) << terms;
    return table_.rowCount();
  };
  const int all = count("");
  EXPECT_EQ(count("tp=1") + count("-tp=1"), all);
  EXPECT_EQ(count("zero=3") + count("zero<3"), all);
  EXPECT_LE(count("tp=1, zero=3"), count("tp=1"));
  EXPECT_EQ(count("recompute=full") + count("not recompute=full"), all);
  EXPECT_EQ(count("zero=1,3"), count("zero=1") + count("zero=3"));
  EXPECT_EQ(count("zero>=3"), count("zero!=1, zero != 2 zero!=0"));
  EXPECT_EQ(count("micro_batch=1"), count("mb=1"));
  EXPECT_EQ(count("memory<10 GB"), count("memory<10000MB"));
  EXPECT_EQ(count("step>20 ms"), count("step>0.02"));
  EXPECT_EQ(count("no such word"), 0);
}

TEST_F(PlanTable, ATermOfACellHoldsForItsPlan) {
  const std::size_t last = small_set()->plans.size() - 1;
  int terms = 0;
  for (int each = 0; each < table_.columnCount(); ++each) {
    table_.set_terms({});
    const QModelIndex cell = table_.index_of(last, each);
    const auto shown = [&] { return table_.index_of(last).isValid(); };
    const QString term = table_.term_for(cell);
    if (term.isEmpty()) continue;
    ++terms;
    const QString below = table_.term_for(cell, u'<'), above = table_.term_for(cell, u'>');
    EXPECT_EQ(table_.set_terms(term), QString());
    EXPECT_TRUE(shown()) << qPrintable(term);
    EXPECT_EQ(table_.set_terms(u'-' + term), QString());
    EXPECT_FALSE(shown()) << qPrintable(term);
    for (const QString& beyond : {below, above}) {
      EXPECT_EQ(beyond.isEmpty(), plan_figure(each).kind != FigureKind::Measure);
      EXPECT_EQ(table_.set_terms(beyond), QString());
    }
  }
  EXPECT_GT(terms, 15);
}

TEST(PlanFigure, SmallMeasuresKeepThreeDigitsAndSharesDoNot) {
  PlanSet set = *small_set();
  sim::StepResult& result = set.plans[0].result;
  const auto text = [&](const char* id) {
    return plan_figure(figure_index(to_qstring(id))).text(set, 0);
  };
  for (const auto& [size, shown] : {std::pair{0.13441, "0.134"},
                                    {0.0056, "0.00560"},
                                    {1.04, "1.0"},
                                    {58.04, "58.0"},
                                    {0.0, "0.0"}}) {
    result.stages[static_cast<std::size_t>(result.fullest)].memory.peak = gigabytes(size);
    EXPECT_EQ(text("memory"), to_qstring(shown));
  }
  result.step = Seconds(0.03994);
  EXPECT_EQ(text("step"), u"0.0399"_s);
  result.throughput.mfu = 0.0004;
  EXPECT_EQ(text("mfu"), u"0.0"_s);
}

// A cell of 58.0 is not below 58, although its plan may need 57.96.
TEST_F(PlanTable, ComparesTheNumbersThatItShows) {
  for (const char* figure : {"memory", "step", "mfu", "cost"}) {
    table_.set_terms({});
    for (int row = 0; row < std::min(table_.rowCount(), 10); ++row) {
      const std::size_t plan = table_.plan_of(table_.index(row, 0));
      const QString text = table_.index_of(plan, column(figure)).data().toString().remove(u',');
      for (const auto& [sign, holds] :
           {std::pair{"=", true}, {"<=", true}, {">=", true}, {"<", false}, {">", false}}) {
        table_.set_terms(to_qstring(figure) + to_qstring(sign) + text);
        EXPECT_EQ(table_.index_of(plan).isValid(), holds) << figure << sign << qPrintable(text);
        table_.set_terms({});
      }
    }
  }
}

TEST_F(PlanTable, SaysWhatIsWrongWithATerm) {
  const int all = table_.rowCount();
  for (const char* wrong : {"nonsense=3", "mfu>many", "schedule<1f1b", "memory<3 s"}) {
    EXPECT_TRUE(table_.set_terms(to_qstring(wrong)).contains(to_qstring(wrong)));
    EXPECT_EQ(table_.rowCount(), all) << wrong;
  }
}

TEST_F(PlanTable, TheLassoAndTheTermsHoldBoth) {
  table_.set_lasso(std::set<int>{0, 2, 3});
  EXPECT_EQ(table_.rowCount(), 3);
  table_.set_terms(u"no such word"_s);
  EXPECT_EQ(table_.rowCount(), 0);
  table_.set_terms({});
  table_.set_lasso(std::nullopt);
  EXPECT_EQ(table_.rowCount(), static_cast<int>(small_set()->plans.size()));
}

TEST_F(PlanTable, EqualPlansKeepTheirOrderBothWays) {
  table_.show(many_plans(1000));
  for (const Qt::SortOrder order : {Qt::AscendingOrder, Qt::DescendingOrder}) {
    table_.sort(column("tp"), order);
    const auto& rows = table_.shown_plans();
    ASSERT_EQ(rows.size(), 1000U);
    for (std::size_t i = 1; i < rows.size(); ++i) {
      const double before = table_.number(rows[i - 1], column("tp"));
      const double now = table_.number(rows[i], column("tp"));
      if (before == now) {
        EXPECT_LT(rows[i - 1], rows[i]);
      } else {
        EXPECT_EQ(before < now, order == Qt::AscendingOrder);
      }
    }
  }
  table_.sort(-1);
  EXPECT_TRUE(std::is_sorted(table_.shown_plans().begin(), table_.shown_plans().end()));
}

TEST_F(PlanTable, AnIndexThatIsKeptFollowsItsPlan) {
  const QPersistentModelIndex kept = table_.index(3, column("memory"));
  const std::size_t plan = table_.plan_of(kept);
  table_.sort(column("memory"), Qt::DescendingOrder);
  ASSERT_TRUE(kept.isValid());
  EXPECT_EQ(table_.plan_of(kept), plan);
  EXPECT_EQ(table_.index_of(plan, column("memory")), QModelIndex(kept));
}

TEST_F(PlanTable, NamesSortByTheirText) {
  table_.sort(column("recompute"));
  for (int row = 1; row < table_.rowCount(); ++row)
    EXPECT_LE(table_.index(row - 1, column("recompute")).data().toString(),
              table_.index(row, column("recompute")).data().toString());
}

TEST_F(PlanTable, HeadersStayWithoutARow) {
  table_.set_terms(u"no such word"_s);
  ASSERT_EQ(table_.rowCount(), 0);
  EXPECT_FALSE(static_cast<const QAbstractItemModel&>(table_).hasChildren());
  EXPECT_EQ(table_.headerData(column("tp"), Qt::Horizontal, Qt::DisplayRole).toString(), u"tp"_s);
}

TEST_F(PlanTable, WordsAreFoundWhateverTheirCase) {
  table_.set_terms(u"\"zero 3\""_s);
  const int found = table_.rowCount();
  EXPECT_GT(found, 0);
  table_.set_terms(u"\"ZeRO 3\""_s);
  EXPECT_EQ(table_.rowCount(), found);
  table_.set_terms(u"recompute=FULL"_s);
  const int full = table_.rowCount();
  table_.set_terms(u"recompute=full"_s);
  EXPECT_EQ(table_.rowCount(), full);
}

TEST(TableText, KeepsCellsApart) {
  const TextTable table{{u"a"_s, u"b"_s},
                        {{u"1,5"_s, u"say \"x\""_s}, {u"p|q"_s, u"two\tparts"_s}}};
  EXPECT_EQ(to_csv(table), u"a,b\n\"1,5\",\"say \"\"x\"\"\"\np|q,two\tparts\n"_s);
  EXPECT_EQ(to_tsv(table), u"a\tb\n1,5\tsay \"x\"\np|q\ttwo parts\n"_s);
  EXPECT_EQ(to_markdown(table),
            u"| a | b |\n| --- | --- |\n| 1,5 | say \"x\" |\n"
            "| p\\|q | two\tparts |\n"_s);
}

TEST(TableText, TitlesHaveTheirUnitsOnOneLine) {
  PlanTableModel model;
  model.show(small_set());
  const TextTable table = text_table(model, {column("step"), column("tp")});
  // Other programs read numbers as they are.
  const TextTable plain = text_table(model, {column("rate")}, Qt::EditRole);
  EXPECT_NEAR(plain.rows.front().front().toDouble(),
              model.set()->plans.front().result.throughput.tokens_per_s_per_gpu, 1e-3);
  EXPECT_EQ(table.header, QStringList({u"Step (s)"_s, u"tp"_s}));
  EXPECT_EQ(table.rows.size(), small_set()->plans.size());
}

}  // namespace
}  // namespace shardwright::gui
