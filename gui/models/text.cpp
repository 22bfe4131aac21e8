#include "gui/models/text.hpp"

#include <fmt/format.h>

#include <QLocale>
#include <QStringList>
#include <array>
#include <cmath>

#include "core/spec/plan_text.hpp"

namespace shardwright::gui {
namespace {

struct Scale {
  double factor;
  const char* prefix;
};
constexpr std::array<Scale, 10> kScales = {{{1e18, "E"},
                                            {1e15, "P"},
                                            {1e12, "T"},
                                            {1e9, "G"},
                                            {1e6, "M"},
                                            {1e3, "k"},
                                            {1.0, ""},
                                            {1e-3, "m"},
                                            {1e-6, "µ"},
                                            {1e-9, "n"}}};

constexpr double kShortestTime = 1e-9;  // seconds

// Three significant digits.
QString three_digits(double value) {
  const double size = std::abs(value);
  return QString::number(value, 'f', size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

QString scaled(double value, const QString& unit, double least) {
  const double size = std::abs(value);
  if (!std::isfinite(size)) return QStringLiteral("–");
  if (size == 0.0) return QStringLiteral("0 ") + unit;
  for (const Scale& scale : kScales) {
    if (size < scale.factor * 0.9995 && scale.factor > least) continue;
    return three_digits(value / scale.factor) + QLatin1Char(' ') + QString::fromUtf8(scale.prefix) +
           unit;
  }
  return QString::number(value) + QLatin1Char(' ') + unit;
}

QString change_text(const planner::Remedy& remedy) {
  using enum planner::RemedyField;
  const auto count = [&] { return count_text(std::get<std::int64_t>(remedy.value)); };
  const auto bytes = [&] { return std::get<Bytes>(remedy.value); };
  const auto constraint = [&] {
    return to_qstring(to_string(std::get<planner::Constraint>(remedy.value)));
  };
  switch (remedy.field) {
    case Gpus:
      return QStringLiteral("%1 GPUs").arg(count());
    case GlobalBatch:
      return QStringLiteral("a global batch of %1").arg(count());
    case SeqLen:
      return QStringLiteral("sequences of %1 tokens").arg(count());
    case MaxMemory:
      return QStringLiteral("a memory limit of %1 GB").arg(fixed_text(bytes().value() / 1e9, 1));
    case AcceleratorMemory:
      return QStringLiteral("accelerators with %1 of memory").arg(bytes_text(bytes()));
    case Fixed:
      return QStringLiteral("the constraint “%1”").arg(constraint());
    case NotFixed:
      return QStringLiteral("no constraint “%1”").arg(constraint());
    case NotForbidden:
      return QStringLiteral("no constraint “not %1”").arg(constraint());
  }
  return {};
}

}  // namespace

QString to_qstring(const std::string& text) {
  return QString::fromStdString(text);
}

bool is_no_time(Seconds time) {
  return std::abs(time.value()) < kShortestTime;
}

QString time_text(Seconds time) {
  const double hours = time.value() / 3600.0;
  if (hours >= 48.0) return fixed_text(hours / 24.0, 1) + QStringLiteral(" days");
  if (hours >= 2.0) return fixed_text(hours, 1) + QStringLiteral(" h");
  if (time.value() >= 1000.0) return fixed_text(time.value(), 0) + QStringLiteral(" s");
  if (time.value() >= 10.0) return fixed_text(time.value(), 2) + QStringLiteral(" s");
  if (is_no_time(time)) return QStringLiteral("0 s");
  return scaled(time.value(), QStringLiteral("s"), kShortestTime);
}

QString bytes_text(Bytes bytes) {
  return scaled(bytes.value(), QStringLiteral("B"), 1.0);
}

QString bandwidth_text(BytesPerSecond bandwidth) {
  return scaled(bandwidth.value(), QStringLiteral("B/s"), 1.0);
}

QString flop_rate_text(FlopPerSecond rate) {
  return scaled(rate.value(), QStringLiteral("FLOP/s"), 1.0);
}

QString count_text(std::int64_t count) {
  return QLocale(QLocale::English).toString(static_cast<qlonglong>(count));
}

QString counted_text(std::int64_t count, const char* what, const char* plural_end) {
  return count_text(count) + QLatin1Char(' ') + QString::fromUtf8(what) +
         (count == 1 ? QString() : QString::fromUtf8(plural_end));
}

QString fixed_text(double value, int decimals) {
  if (!std::isfinite(value)) return QStringLiteral("–");
  return QLocale(QLocale::English).toString(value, 'f', decimals);
}

QString percent_text(double ratio) {
  return fixed_text(100.0 * ratio, 1) + QStringLiteral(" %");
}

QString signed_percent_text(double ratio) {
  const QString sign = ratio >= 0.0 ? QStringLiteral("+") : QStringLiteral("−");
  return sign + percent_text(std::abs(ratio));
}

QString short_text(double value) {
  return scaled(value, QString(), 1.0).trimmed();
}

bool has_own_rank_order(const Plan& plan) {
  static const std::vector<Axis> kUsual = Plan().rank_order;
  return plan.pp > 1 && plan.rank_order != kUsual;
}

// Written for each of 100,000 plans once somebody types a word into a filter.
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
  if (plan.recompute != RecomputePolicy::None) {
    fmt::format_to(end, " · recompute {}", name_of(plan.recompute));
    if (plan.recompute_layers > 0) fmt::format_to(end, " {}", plan.recompute_layers);
  }
  if (const std::string split = layer_split_text(plan); !split.empty())
    fmt::format_to(end, " · {}{}", plan.stage_layers.empty() ? "" : "layers ", split);
  if (plan.offloads_optimizer())
    fmt::format_to(end, " · optimizer on {}", name_of(plan.offload_optimizer));
  if (plan.offload_activations) fmt::format_to(end, " · activations offloaded");
  if (has_own_rank_order(plan))
    fmt::format_to(end, " · ranks {}", rank_order_text(plan.rank_order));
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

QString remedy_text(const std::vector<planner::Remedy>& remedies) {
  QStringList changes;
  for (const planner::Remedy& remedy : remedies) changes.append(change_text(remedy));
  return changes.join(QStringLiteral(" and "));
}

QString problem_text(const Problem& problem) {
  QString text =
      problem.where.empty() ? QString() : to_qstring(problem.where) + QStringLiteral(": ");
  text += to_qstring(problem.found);
  if (!problem.expected.empty())
    text += QStringLiteral("; expected ") + to_qstring(problem.expected);
  return text;
}

QString error_text(const InputError& error) {
  QStringList lines;
  for (const Problem& problem : error.problems()) lines.append(problem_text(problem));
  return to_qstring(error.source()) + QStringLiteral(": ") + lines.join(QStringLiteral("\n"));
}

}  // namespace shardwright::gui
