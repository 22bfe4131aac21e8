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

// Plans that differ in their figures only.
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

struct FilteredPlans {
  PlanTableModel model;
  PlanFilter filter;

  FilteredPlans() {
    model.show(small_set());
    filter.setSourceModel(&model);
  }
};

TEST(PlanTable, KeepsTheRulesOfItemModels) {
  PlanTableModel model;
  PlanFilter filter;
  filter.setSourceModel(&model);
  const QAbstractItemModelTester of_model(&model,
                                          QAbstractItemModelTester::FailureReportingMode::Fatal);
  const QAbstractItemModelTester of_filter(&filter,
                                           QAbstractItemModelTester::FailureReportingMode::Fatal);
  model.show(small_set());
  filter.sort(column("memory"));
  EXPECT_EQ(filter.set_terms(u"tp=1"_s), QString());
  model.show(nullptr);
  EXPECT_EQ(filter.rowCount(), 0);
}

TEST(PlanTable, SortsByNumbersNotByTheirText) {
  FilteredPlans plans;
  auto& [model, filter] = plans;
  filter.sort(column("memory"), Qt::AscendingOrder);
  double before = 0.0;
  for (int row = 0; row < filter.rowCount(); ++row) {
    const int source = filter.mapToSource(filter.index(row, 0)).row();
    const double memory =
        small_set()->plans[static_cast<std::size_t>(source)].result.memory().peak.value();
    EXPECT_GE(memory, before);
    before = memory;
  }
  EXPECT_GT(before, 0.0);
}

TEST(PlanTable, TermsFilterTogetherAndTurnRound) {
  FilteredPlans plans;
  auto& [model, filter] = plans;
  const auto count = [&](const char* terms) {
    EXPECT_EQ(filter.set_terms(to_qstring(terms)), QString()) << terms;
    return filter.rowCount();
  };
  const int all = count("");
  EXPECT_EQ(count("tp=1") + count("-tp=1"), all);
  EXPECT_EQ(count("zero=3") + count("zero<3"), all);
  EXPECT_LE(count("tp=1, zero=3"), count("tp=1"));
  EXPECT_EQ(count("recompute=full") + count("-recompute=full"), all);
  EXPECT_EQ(count("no such word"), 0);
}

TEST(PlanTable, ATermOfACellHoldsForItsPlan) {
  FilteredPlans plans;
  auto& [model, filter] = plans;
  const int last = model.rowCount() - 1;
  int terms = 0;
  for (int each = 0; each < model.columnCount(); ++each) {
    const QModelIndex cell = model.index(last, each);
    const auto shown = [&] { return filter.mapFromSource(cell).isValid(); };
    const QString term = model.term_for(cell);
    if (term.isEmpty()) continue;
    ++terms;
    EXPECT_EQ(filter.set_terms(term), QString());
    EXPECT_TRUE(shown()) << qPrintable(term);
    EXPECT_EQ(filter.set_terms(u'-' + term), QString());
    EXPECT_FALSE(shown()) << qPrintable(term);
    for (const char relation : {'<', '>'}) {
      const QString beyond = model.term_for(cell, QLatin1Char(relation));
      EXPECT_EQ(beyond.isEmpty(),
                plan_figures()[static_cast<std::size_t>(each)].kind != FigureKind::Measure);
      EXPECT_EQ(filter.set_terms(beyond), QString());
    }
  }
  EXPECT_GT(terms, 15);
}

TEST(PlanTable, SaysWhatIsWrongWithATerm) {
  FilteredPlans plans;
  auto& [model, filter] = plans;
  const int all = filter.rowCount();
  for (const char* wrong : {"nonsense=3", "mfu>many", "schedule<1f1b"}) {
    EXPECT_TRUE(filter.set_terms(to_qstring(wrong)).contains(to_qstring(wrong)));
    EXPECT_EQ(filter.rowCount(), all) << wrong;
  }
}

TEST(PlanTable, TheLassoAndTheTermsHoldBoth) {
  FilteredPlans plans;
  auto& [model, filter] = plans;
  filter.set_lasso({0, 2, 3});
  EXPECT_EQ(filter.rowCount(), 3);
  filter.set_terms(u"no such word"_s);
  EXPECT_EQ(filter.rowCount(), 0);
  filter.set_terms({});
  filter.clear_lasso();
  EXPECT_EQ(filter.rowCount(), model.rowCount());
}

TEST(PlanTable, EqualPlansKeepTheirOrderBothWays) {
  PlanTableModel model;
  model.show(many_plans(1000));
  PlanFilter filter;
  filter.setSourceModel(&model);
  for (const Qt::SortOrder order : {Qt::AscendingOrder, Qt::DescendingOrder}) {
    filter.sort(column("tp"), order);
    const auto& rows = filter.source_rows();
    ASSERT_EQ(rows.size(), 1000U);
    for (std::size_t i = 1; i < rows.size(); ++i) {
      const double before = model.number(rows[i - 1], column("tp"));
      const double now = model.number(rows[i], column("tp"));
      if (before == now) {
        EXPECT_LT(rows[i - 1], rows[i]);
      } else {
        EXPECT_EQ(before < now, order == Qt::AscendingOrder);
      }
    }
  }
  filter.sort(-1);
  EXPECT_TRUE(std::is_sorted(filter.source_rows().begin(), filter.source_rows().end()));
}

TEST(PlanTable, AnIndexThatIsKeptFollowsItsPlan) {
  FilteredPlans plans;
  auto& [model, filter] = plans;
  const QPersistentModelIndex kept = filter.index(3, column("memory"));
  const int plan = filter.mapToSource(kept).row();
  filter.sort(column("memory"), Qt::DescendingOrder);
  ASSERT_TRUE(kept.isValid());
  EXPECT_EQ(filter.mapToSource(kept).row(), plan);
  EXPECT_EQ(filter.mapFromSource(model.index(plan, column("memory"))), QModelIndex(kept));
}

TEST(PlanTable, NamesSortByTheirText) {
  FilteredPlans plans;
  auto& [model, filter] = plans;
  filter.sort(column("recompute"));
  for (int row = 1; row < filter.rowCount(); ++row)
    EXPECT_LE(filter.index(row - 1, column("recompute")).data().toString(),
              filter.index(row, column("recompute")).data().toString());
}

TEST(PlanTable, HeadersStayWithoutARow) {
  FilteredPlans plans;
  auto& [model, filter] = plans;
  filter.set_terms(u"no such word"_s);
  ASSERT_EQ(filter.rowCount(), 0);
  EXPECT_FALSE(filter.hasChildren());
  EXPECT_EQ(filter.headerData(column("tp"), Qt::Horizontal, Qt::DisplayRole).toString(), u"tp"_s);
}

TEST(PlanTable, WordsAreFoundWhateverTheirCase) {
  FilteredPlans plans;
  auto& [model, filter] = plans;
  filter.set_terms(u"zero 3"_s);
  const int found = filter.rowCount();
  EXPECT_GT(found, 0);
  filter.set_terms(u"ZeRO 3"_s);
  EXPECT_EQ(filter.rowCount(), found);
  filter.set_terms(u"recompute=FULL"_s);
  const int full = filter.rowCount();
  filter.set_terms(u"recompute=full"_s);
  EXPECT_EQ(filter.rowCount(), full);
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
