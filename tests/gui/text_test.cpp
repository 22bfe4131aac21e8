#include "gui/models/text.hpp"

#include <gtest/gtest.h>

#include <QFontMetrics>
#include <QTextLayout>

namespace shardwright::gui {
namespace {

TEST(TimeText, HasThreeDigitsAtAnyScale) {
  for (const auto& [seconds, text] : {std::pair{16.154, "16.15 s"},
                                      {0.0456, "45.6 ms"},
                                      {7.89e-6, "7.89 µs"},
                                      {1.5e-9, "1.5 ns"},
                                      {-0.25, "-250 ms"},
                                      {0.0, "0 s"}})
    EXPECT_EQ(time_text(Seconds(seconds)), to_qstring(text));
}

TEST(RangeTextTest, HasOneUnitAndTheDigitsOfItsLength) {
  const auto all = [](double from, double to) {
    const RangeText text = range_text(Seconds(from), Seconds(to));
    return u"%1 from %2 to %3"_s.arg(text.length, text.from, text.to);
  };
  EXPECT_EQ(all(2.964174, 6.814), u"3.85 s from 2.96 s to 6.81 s"_s);
  EXPECT_EQ(all(0.0, 0.9996), u"1.00 s from 0.00 s to 1.00 s"_s);
  EXPECT_EQ(all(2.9641, 3.0), u"35.9 ms from 2,964.1 ms to 3,000.0 ms"_s);
  EXPECT_EQ(all(2.0, 2.09999), u"100 ms from 2,000 ms to 2,100 ms"_s);
  EXPECT_EQ(all(1.0, 1.000012), u"12.0 µs from 1,000,000.0 µs to 1,000,012.0 µs"_s);
  EXPECT_EQ(all(14.6, 42.36), u"27.76 s from 14.60 s to 42.36 s"_s);
  EXPECT_EQ(all(10.0, 1234.4), u"1,224 s from 10 s to 1,234 s"_s);
}

// Sums that should cancel leave such residues.
TEST(TimeText, BelowANanosecondThereIsNone) {
  for (const double seconds : {6e-16, -6e-16, 9.9e-10})
    EXPECT_EQ(time_text(Seconds(seconds)), u"0 s"_s);
}

TEST(LongTimeText, IsInTheUnitThatKeepsItShort) {
  for (const auto& [seconds, text] : {std::pair{45.25, "45.25 s"},
                                      {594.0, "9.9 min"},
                                      {10'800.0, "3 h"},
                                      {4'043'520.0, "46.8 days"}})
    EXPECT_EQ(long_time_text(Seconds(seconds)), to_qstring(text));
}

TEST(WholeQuantities, OnlyASpaceBeforeAUnitIsKept) {
  EXPECT_EQ(with_whole_quantities(u"46.1 % of 50 GB/s on 8 GPUs in 2 steps"_s),
            u"46.1\u00a0% of 50\u00a0GB/s on 8\u00a0GPUs in 2 steps"_s);
  EXPECT_EQ(with_whole_quantities(u"1.2 ms, 3 µs. 12 spans of 16-bit numbers"_s),
            u"1.2\u00a0ms, 3\u00a0µs. 12 spans of 16\u2011bit numbers"_s);
}

// Texts are plain, whatever they look like, and short ones stay in a line.
TEST(ToolTip, ShowsValuesInALineAndSentencesBelow) {
  const QString tip = tool_tip(u"a<b"_s, TipSource(u"a file"_s),
                               {{u"share %2"_s, u"5 %"_s}, {u"A click plans for it."_s}});
  EXPECT_TRUE(tip.startsWith(u"<b>a&lt;b</b>"_s));
  EXPECT_TRUE(
      tip.contains(u">share %2\u00a0\u00a0</td><td style=\"white-space:nowrap\">5 %</td>"_s));
  EXPECT_TRUE(
      tip.contains(u"</table><div style=\"white-space:nowrap\">A click plans for it.</div>"_s));
  EXPECT_TRUE(
      tip.contains(u">source\u00a0\u00a0</td><td style=\"white-space:nowrap\">a file</td>"_s));
  EXPECT_TRUE(tool_tip({}, TipSource(u"a file"_s), {{QString(61, u'a')}}).contains(u"<div>aa"_s));
}

// Keys of JSON may hold slashes, which pointers escape (RFC 6901).
TEST(FieldText, NamesFieldsAndEntriesAndLeavesOtherPlaces) {
  EXPECT_EQ(field_text("/plans/1/plan/tp"), u"plans › entry 2 › plan › tp"_s);
  EXPECT_EQ(field_text("/what_if/peak FLOP~1s/a~01"), u"what_if › peak FLOP/s › a~1"_s);
  EXPECT_EQ(field_text("line 3"), u"line 3"_s);
}

TEST(Text, RatesAreNotBrokenAtTheEndOfALine) {
  const QFont font;
  const QString text = u"at 1,489 tokens/s in all"_s;
  const int width = QFontMetrics(font).horizontalAdvance(u"at 1,489 tokens/"_s) + 1;
  const auto first_line = [&](const QString& shown) {
    QTextLayout layout(shown, font);
    layout.beginLayout();
    QTextLine line = layout.createLine();
    line.setLineWidth(width);
    layout.endLayout();
    return shown.left(line.textLength()).trimmed();
  };
  EXPECT_EQ(first_line(text), u"at 1,489 tokens/"_s);
  EXPECT_EQ(first_line(with_whole_rates(text)), u"at 1,489"_s);
  EXPECT_EQ(with_whole_rates(u"/srv/s1"_s), u"/srv/s1"_s);
}

}  // namespace
}  // namespace shardwright::gui
