// Numbers and plans as the views show them: quantities as core/base/quantity_text.hpp formats them,
// and "–" for numbers that are not finite.
#pragma once

#include <QString>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/quantity_text.hpp"
#include "core/base/units.hpp"
#include "core/spec/plan.hpp"

namespace shardwright::gui {

using Qt::StringLiterals::operator""_s;

QString to_qstring(std::string_view text);

// True for times below a nanosecond, which are residues of sums that cancel.
bool is_no_time(Seconds time);
// "16.15 s", "45.6 ms", "7.89 µs"; "0 s" for no time.
QString time_text(Seconds time);
// "3.85 s", "2.96 s" and "6.81 s": a part of a step in the unit of its length, with as many
// decimals as time_text() gives the length.
struct RangeText {
  QString length;
  QString from;
  QString to;
};
RangeText range_text(Seconds from, Seconds to);
// Three significant digits: "1,234", "12.3".
QString number_text(double value);
// Times of runs: "25.5 days", "7.3 h", "9.9 min"; shorter ones as time_text() writes them.
QString long_time_text(Seconds time);
// Powers of 1000: "80 GB".
QString bytes_text(Bytes bytes);
QString bandwidth_text(BytesPerSecond bandwidth);
QString flop_rate_text(FlopPerSecond rate);
template <std::integral Count>
QString count_text(Count count) {
  return to_qstring(format_count(static_cast<std::int64_t>(count)));
}
// "1 stage", "1,024 microbatches".
template <std::integral Count>
QString counted_text(Count count, const char* what) {
  return to_qstring(format_plural(static_cast<std::int64_t>(count), what));
}
QString fixed_text(double value, int decimals);
// The shortest text that reads back as the same double, for exported tables.
QString exact_text(double value);
// Writes a share: 0.4567 is "45.7 %".
QString percent_text(double ratio);

// Says "< 0.1 %" of a share that percent_text() would round to nothing.
QString share_text(double share);
// "+3.2 %", "−0.5 %".
QString signed_percent_text(double ratio);
// Keeps rates as "1,489 tokens/s" from being broken behind the slash at the end of a line.
QString with_whole_rates(QString text);
// Three significant digits in powers of 1000: "1.5 k", "3.2 M".
QString short_text(double value);

// Keeps a number and its unit, as in "450 GB/s", "24 %" or "16-bit", in one line.
QString with_whole_quantities(QString text);

// True if the ranks have another order than the usual one. Without a pipeline all orders are the
// same.
bool has_own_rank_order(const Plan& plan);

// "dp 16 · tp 8 · pp 4 · zero 1 · mb 1 · 1f1b" and everything else that is not at its default.
QString plan_text(const Plan& plan);

// A line of a tool tip: what it states and its value with the unit, or a sentence without a value.
struct TipLine {
  QString what;
  QString value{};
};

// Where the figures of a tool tip come from, in plain words: what computed or measured them.
struct TipSource {
  explicit TipSource(QString from) : text(std::move(from)) {}
  QString text;
};

// What a mark or a row says where the mouse rests on it: a title, values, their source, and below
// them sentences. The texts are plain.
QString tool_tip(const QString& title, const TipSource& source, const std::vector<TipLine>& lines);

// Names the place of a JSON pointer as its fields: "plans › entry 2 › plan › tp" for
// "/plans/1/plan/tp". Other places stay as they are.
QString field_text(std::string_view place);

// Write the problems of an input, one a line.
QString problem_text(const Problem& problem);
QString error_text(const InputError& error);

}  // namespace shardwright::gui
