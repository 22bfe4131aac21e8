#include "gui/timeline/span_query.hpp"

#include <gtest/gtest.h>

#include <set>

#include "gui/models/text.hpp"
#include "tests/gui/example_step.hpp"

namespace shardwright::gui {
namespace {

TEST(SpanQuery, TermsMustAllHoldAndMayBeTurnedRound) {
  Span span;
  span.name = "attention.QKV";
  span.kind = OpKind::Gemm;
  span.layer = 3;
  span.group = Group::Tensor;
  const auto matches = [&](const char* text) {
    return SpanQuery::parse(to_qstring(text)).matches(span);
  };
  EXPECT_TRUE(matches(""));
  EXPECT_TRUE(matches("qkv"));
  EXPECT_TRUE(matches("norm,qkv kind=gemm,attention layer=2-4"));
  EXPECT_FALSE(matches("qkv layer=4-9"));
  EXPECT_FALSE(matches("-qkv"));
  EXPECT_TRUE(matches("-kind=all-reduce group=tensor stream=compute"));
  EXPECT_FALSE(matches("mb=0"));
  EXPECT_TRUE(matches("layer>=3, layer<4; not kind=attention"));
  EXPECT_FALSE(matches("layer>3"));
  EXPECT_TRUE(matches("layer!=4 name=\"attention.QKV\""));
}

TEST(SpanQuery, HoldsForTheSpanThatATermIsOf) {
  const std::vector<Span>& spans = gui::fixtures::small_step().timeline->spans;
  std::set<QString> fields;
  for (std::size_t i = 0; i < spans.size(); i += 7) {
    const Span& span = spans[i];
    for (const QString& term : terms_of(span)) {
      QStringList problems;
      EXPECT_TRUE(SpanQuery::parse(term, &problems).matches(span)) << qPrintable(term);
      EXPECT_FALSE(SpanQuery::parse(u'-' + term, &problems).matches(span)) << qPrintable(term);
      EXPECT_TRUE(problems.isEmpty()) << qPrintable(problems.join(u';'));
      fields.insert(term.section(u'=', 0, 0));
    }
  }
  EXPECT_EQ(fields.size(), 7U);
}

TEST(SpanQuery, ReportsWhatItCannotRead) {
  QStringList problems;
  const SpanQuery query = SpanQuery::parse(u"colour=red qkv layer=x kind=gem kind="_s, &problems);
  EXPECT_EQ(problems.size(), 4);
  EXPECT_EQ(problems.filter(u"“gem” is none of gemm, "_s).size(), 1)
      << qPrintable(problems.join(u';'));
  EXPECT_FALSE(query.empty());
}

}  // namespace
}  // namespace shardwright::gui
