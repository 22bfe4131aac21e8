#include "gui/models/text.hpp"

#include <fmt/format.h>

#include <QLocale>
#include <QRegularExpression>
#include <QStringList>
#include <cmath>
#include <iterator>
#include <utility>

#include "core/spec/plan_text.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/run_spec.hpp"

namespace shardwright::gui {
namespace {

constexpr double kShortestTimeS = 1e-9;

QString or_dash(double value, const std::string& text) {
  return std::isfinite(value) ? to_qstring(text) : u"–"_s;
}

int digits_of(Seconds time) {
  // Times from here on, in seconds, have another digit.
  constexpr double kLong = 10.0;
  return std::abs(time.value()) >= kLong ? 4 : 3;
}

}  // namespace

QString to_qstring(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

bool is_no_time(Seconds time) {
  return std::abs(time.value()) < kShortestTimeS;
}

QString time_text(Seconds time) {
  if (is_no_time(time)) return u"0 s"_s;
  return or_dash(time.value(), format_time(time, digits_of(time)));
}

RangeText range_text(Seconds from, Seconds to) {
  constexpr std::pair<double, const char*> kUnits[] = {
      {1.0, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}};
  constexpr double kRoundsToOne = 0.9995;
  const double length = (to - from).value();
  const auto* unit = std::begin(kUnits);
  while (length < kRoundsToOne * unit->first && unit + 1 != std::end(kUnits)) ++unit;
  int decimals = digits_of(to - from) - 1;
  for (double rest = length / unit->first; rest >= 9.995 && decimals > 0; rest /= 10.0) --decimals;
  const auto text = [&](double time) {
    return fixed_text(time / unit->first, decimals) + u' ' + to_qstring(unit->second);
  };
  return {text(length), text(from.value()), text(to.value())};
}

QString number_text(double value) {
  return or_dash(value, format_number(value));
}

QString long_time_text(Seconds time) {
  constexpr double kMinute = 60.0, kHour = 3600.0;
  const double seconds = time.value();
  if (!std::isfinite(seconds)) return u"–"_s;
  if (seconds >= 2.0 * kSecondsPerDay)
    return u"%1 days"_s.arg(number_text(seconds / kSecondsPerDay));
  if (seconds >= 2.0 * kHour) return u"%1 h"_s.arg(number_text(seconds / kHour));
  if (seconds >= 2.0 * kMinute) return u"%1 min"_s.arg(number_text(seconds / kMinute));
  return time_text(time);
}

QString bytes_text(Bytes bytes) {
  return or_dash(bytes.value(), format_bytes(bytes));
}

QString bandwidth_text(BytesPerSecond bandwidth) {
  return or_dash(bandwidth.value(), format_bandwidth(bandwidth));
}

QString flop_rate_text(FlopPerSecond rate) {
  return or_dash(rate.value(), format_flop_rate(rate));
}

QString fixed_text(double value, int decimals) {
  return or_dash(value, format_fixed(value, decimals));
}

QString exact_text(double value) {
  return QString::number(value, 'g', QLocale::FloatingPointShortest);
}

QString percent_text(double ratio) {
  return fixed_text(100.0 * ratio, 1) + u" %"_s;
}

QString share_text(double share) {
  constexpr double kLeastShare = 0.0005;
  return share > 0.0 && share < kLeastShare ? u"< 0.1 %"_s : percent_text(share);
}

QString signed_percent_text(double ratio) {
  const QString sign = ratio >= 0.0 ? u"+"_s : u"−"_s;
  return sign + percent_text(std::abs(ratio));
}

QString with_whole_rates(QString text) {
  static const QRegularExpression kRate(u"/(?=s\\b)"_s);
  constexpr char16_t kWordJoiner = 0x2060;
  return text.replace(kRate, u"/"_s + QChar(kWordJoiner));
}

QString short_text(double value) {
  return or_dash(value, format_short(value));
}

QString with_whole_quantities(QString text) {
  static const QRegularExpression kSpace(
      u"(?<=\\d) (?=(?:%|[kMGTPE]?B(?:/s)?|[mµn]?s|min|h|d|days|GPUs?)(?![\\w/]))"_s);
  static const QRegularExpression kHyphen(u"(?<=\\d)-(?=bit\\b)"_s);
  return text.replace(kSpace, u"\u00a0"_s).replace(kHyphen, u"\u2011"_s);
}

bool has_own_rank_order(const Plan& plan) {
  static const std::vector<Axis> kUsual = Plan().rank_order;
  return plan.pp > 1 && plan.rank_order != kUsual;
}

// Formats quickly, because a word in a filter needs the text of each of 100,000 plans.
QString plan_text(const Plan& plan) {
  fmt::memory_buffer text;
  const fmt::appender end(text);
  fmt::format_to(end, "dp {} · tp {} · pp {}", plan.dp, plan.tp, plan.pp);
  if (plan.cp > 1) fmt::format_to(end, " · cp {} {}", plan.cp, name_of(plan.context_parallel));
  if (plan.ep > 1) fmt::format_to(end, " · ep {}", plan.ep);
  if (plan.expert_tp > 1) fmt::format_to(end, " · expert tp {}", plan.expert_tp);
  if (plan.vpp > 1) fmt::format_to(end, " · vpp {}", plan.vpp);
  fmt::format_to(end, " · zero {}", plan.zero_stage);
  if (plan.shard_group > 0) fmt::format_to(end, " · shard group {}", plan.shard_group);
  fmt::format_to(end, " · mb {}", plan.micro_batch);
  if (plan.pp > 1) fmt::format_to(end, " · {}", name_of(plan.schedule));
  if (plan.recompute != RecomputePolicy::None)
    fmt::format_to(end, " · recompute {}", recompute_text(plan));
  if (const std::string split = layer_split_text(plan); !split.empty())
    fmt::format_to(end, " · {}{}", plan.stage_layers.empty() ? "" : "layers ", split);
  if (names_pools(plan)) fmt::format_to(end, " · on {}", pools_text(plan));
  if (plan.optimizer_states != OptimizerStates::OfStack)
    fmt::format_to(end, " · {} optimizer states", name_of(plan.optimizer_states));
  if (plan.offloads_optimizer())
    fmt::format_to(end, " · optimizer on {}", name_of(plan.offload_optimizer));
  if (plan.offload_activations)
    fmt::format_to(end, " · {} offloaded", offloaded_activations_text(plan));
  if (has_own_rank_order(plan))
    fmt::format_to(end, " · ranks {}", rank_order_text(plan.rank_order));
  return to_qstring({text.data(), text.size()});
}

QString tool_tip(const QString& title, const TipSource& source, const std::vector<TipLine>& lines) {
  // Longer texts are broken into lines.
  constexpr qsizetype kMostUnbroken = 40;
  const auto block = [](const char* tag, const QString& text) {
    const QString style =
        text.size() > kMostUnbroken ? QString() : u" style=\"white-space:nowrap\""_s;
    return u"<%1%2>%3</%1>"_s.arg(to_qstring(tag), style, text.toHtmlEscaped());
  };
  QString values, sentences;
  const auto add = [&](const TipLine& line) {
    if (line.value.isEmpty()) {
      sentences += block("div", line.what);
    } else {
      values += u"<tr>%1%2</tr>"_s.arg(block("td", line.what + u"\u00a0\u00a0"_s),
                                       block("td", line.value));
    }
  };
  for (const TipLine& line : lines) add(line);
  add({u"source"_s, source.text});
  return u"<b>%1</b><table cellspacing=0>%2</table>%3"_s.arg(title.toHtmlEscaped(), values,
                                                             sentences);
}

QString field_text(std::string_view place) {
  const QString text = to_qstring(place);
  if (!text.startsWith(u'/')) return text;
  QStringList names = text.mid(1).split(u'/');
  for (QString& name : names) {
    bool is_entry = false;
    const qulonglong entry = name.toULongLong(&is_entry);
    if (is_entry) {
      name = u"entry %1"_s.arg(entry + 1);
    } else {
      name.replace(u"~1"_s, u"/"_s).replace(u"~0"_s, u"~"_s);
    }
  }
  return names.join(u" › "_s);
}

QString problem_text(const Problem& problem) {
  QString text = problem.where.empty() ? QString() : field_text(problem.where) + u": "_s;
  text += to_qstring(problem.found);
  if (!problem.expected.text.empty())
    text += u"; expected "_s + to_qstring(to_string(problem.expected));
  return text;
}

QString error_text(const InputError& error) {
  QStringList lines;
  for (const Problem& problem : error.problems()) lines.append(problem_text(problem));
  return to_qstring(error.source()) + u": "_s + lines.join(u"\n"_s);
}

}  // namespace shardwright::gui
