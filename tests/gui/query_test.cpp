#include "gui/models/query.hpp"

#include <gtest/gtest.h>

#include <QAbstractItemView>
#include <QLineEdit>

#include "gui/models/text.hpp"
#include "gui/views/query_completer.hpp"
#include "tests/gui/says.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

// The terms as they are understood: "not zero=3" whichever way it was typed.
QStringList understood(const char* line) {
  QStringList terms;
  const Query query = parse_query(to_qstring(line));
  EXPECT_EQ(query.problem(), QString()) << line;
  for (const QueryTerm& term : query.terms)
    terms.append((term.negated ? u"not "_s : QString()) + term.text());
  return terms;
}

TEST(Query, ReadsTermsHoweverTheyAreSeparated) {
  const QStringList both = {u"tp=8"_s, u"not zero=3"_s};
  for (const char* line : {"tp=8, not zero=3", "tp=8;not zero=3", "tp=8 -zero=3", "tp = 8 zero!=3",
                           " TP=8 ,, not  zero=3 ; ", "tp=8,zero!=3", "tp=8,-zero=3"})
    EXPECT_EQ(understood(line), both) << line;
  EXPECT_EQ(understood("tp=4,8 pp>=4"), QStringList({u"tp=4,8"_s, u"pp>=4"_s}));
  EXPECT_EQ(understood("memory < 70 GB interleaved"),
            QStringList({u"memory<70 GB"_s, u"interleaved"_s}));
  EXPECT_EQ(understood("name=\"a, b\",c \"x y\" layer=0-7"),
            QStringList({u"name=\"a, b\",c"_s, u"\"x y\""_s, u"layer=0-7"_s}));
  EXPECT_EQ(understood("norm,qkv -full"), QStringList({u"norm,qkv"_s, u"not full"_s}));
  EXPECT_EQ(understood("zero!=3 -zero!=3"), QStringList({u"not zero=3"_s, u"zero=3"_s}));
  EXPECT_TRUE(understood("").isEmpty());
}

TEST(Query, SaysFromWhereOnALineCannotBeRead) {
  for (const auto& [line, wrong] : {std::pair{"tp=8, pp>=", "pp>="},
                                    {"tp=8, =4", "=4"},
                                    {"tp=8 \"open", "\"open"},
                                    {"tp=8 zero==3", "zero==3"}}) {
    const Query query = parse_query(to_qstring(line));
    EXPECT_THAT(query.problem(), Says(u"“%1”"_s.arg(to_qstring(wrong)))) << line;
    EXPECT_EQ(query.terms.size(), 1U) << line;
  }
}

TEST(Query, QuotedValuesAreReadBackWhole) {
  for (const char* value : {"8", "70 GB", "1f1b", "a b", "a,b", "a=b", "x<y>", "not", "-1", "-x"}) {
    const Query query = parse_query(u"name="_s + quoted(to_qstring(value)));
    ASSERT_EQ(query.terms.size(), 1U) << value;
    EXPECT_EQ(query.terms[0].values, QStringList(to_qstring(value)));
  }
}

TEST(Query, NumbersAreConvertedToTheUnitOfTheirField) {
  EXPECT_DOUBLE_EQ(*number_in(u"70"_s, u"GB"_s), 70.0);
  EXPECT_DOUBLE_EQ(*number_in(u"80 GiB"_s, u"GB"_s), 80.0 * 1.073741824);
  EXPECT_DOUBLE_EQ(*number_in(u"250ms"_s, u"s"_s), 0.25);
  EXPECT_FALSE(number_in(u"70 GB"_s, u"s"_s));
  EXPECT_FALSE(number_in(u"8 GB"_s, QString()));
  EXPECT_FALSE(number_in(u"many"_s, u"%"_s));
}

class QueryCompleterTest : public WindowTest {
 protected:
  // Types into a line, chooses the first completion and returns the line.
  QString completed(QLineEdit& line, const char* typed) {
    line.setFocus();
    line.clear();
    QTest::keyClicks(&line, to_qstring(typed));
    QAbstractItemView* list = line.completer()->popup();
    EXPECT_TRUE(list->isVisible()) << typed;
    QTest::keyClick(list, Qt::Key_Down);
    QTest::keyClick(list, Qt::Key_Return);
    return line.text();
  }
};

TEST_F(QueryCompleterTest, CompletesTheTermThatIsTyped) {
  show_plans();
  auto& filter = find<QLineEdit>("filter");
  EXPECT_EQ(completed(filter, "tp=1, memo"), u"tp=1, memory<"_s);
  EXPECT_EQ(completed(filter, "not recompute=fu"), u"not recompute=full"_s);
  EXPECT_EQ(completed(filter, "-recompute=none,fu"), u"-recompute=none,full"_s);
  auto& constraints = find<QLineEdit>("constraints");
  EXPECT_EQ(completed(constraints, "tp=8; sched"), u"tp=8; schedule="_s);
  EXPECT_EQ(completed(constraints, "schedule=gp"), u"schedule=gpipe"_s);
  // What is typed in full needs no list, and neither does the next term before it begins.
  for (const char* typed : {"schedule=gpipe", "tp=8, "}) {
    constraints.clear();
    QTest::keyClicks(&constraints, to_qstring(typed));
    EXPECT_FALSE(constraints.completer()->popup()->isVisible()) << typed;
  }
}

TEST(Query, BothNamesOfAFieldMeanIt) {
  for (const auto& [figure, field] : {std::pair{"mb", "micro_batch"},
                                      {"cp_by", "context_parallel"},
                                      {"offload", "offload_optimizer"}}) {
    EXPECT_EQ(figure_name(to_qstring(field)), to_qstring(figure));
    EXPECT_EQ(plan_field_name(to_qstring(figure)), to_qstring(field));
  }
  ScenarioChoice choice = small_choice();
  choice.constraints = "offload=host";
  const planner::PlanRequest by_figure = load_request(choice);
  choice.constraints = "offload_optimizer=host";
  EXPECT_EQ(by_figure.constraints.fixed, load_request(choice).constraints.fixed);
  EXPECT_TRUE(constraint_completions().contains(u"offload=host"_s));
}

}  // namespace
}  // namespace shardwright::gui
