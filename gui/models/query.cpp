#include "gui/models/query.hpp"

#include <QCoreApplication>
#include <QRegularExpression>
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/base/enum_names.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

constexpr EnumArray<Relation, const char*> kSigns{{{"=", "<", "<=", ">", ">="}}};

struct Unit {
  const char* name;
  // The unit of figures, and how many of them this one is.
  const char* of;
  double factor;
};
constexpr std::array kUnits = {Unit{"%", "%", 1.0},    Unit{"s", "s", 1.0},
                               Unit{"ms", "s", 1e-3},  Unit{"min", "s", 60.0},
                               Unit{"MB", "GB", 1e-3}, Unit{"GB", "GB", 1.0},
                               Unit{"TB", "GB", 1e3},  Unit{"GiB", "GB", 1.073741824}};

// All units as alternatives of a pattern: "%|s|ms".
const QString& unit_pattern() {
  static const QString kPattern = [] {
    QStringList names;
    for (const Unit& unit : kUnits) names.append(to_qstring(unit.name));
    return names.join(u'|');
  }();
  return kPattern;
}

// The names of a plan's field in the table of plans and in constraints.
constexpr std::array<std::pair<const char*, const char*>, 4> kNames = {
    {{"mb", "micro_batch"},
     {"batch", "global_batch"},
     {"cp_by", "context_parallel"},
     {"offload", "offload_optimizer"}}};

const QRegularExpression& term_pattern() {
  static const QString kValue =
      uR"((?:"[^"]*"|[\d.]+\s+(?:UNITS)(?![\w=<>!])|[^\s,;"=<>!]+))"_s.replace(u"UNITS"_s,
                                                                               unit_pattern());
  // A comma before a sign, a minus or a "not" ends the term.
  static const QString kValues =
      uR"(VALUE(?:,(?!-\D|not\s|\w[\w-]*\s*[=<>!])VALUE)*)"_s.replace(u"VALUE"_s, kValue);
  static const QRegularExpression kTerm(
      uR"([\s,;]*(?<not>not\s+|-(?=\S))?(?:(?<field>\w[\w-]*)\s*(?<sign><=|>=|!=|=|<|>)\s*)"
      uR"((?<values>VALUES)|(?<word>VALUES)))"_s.replace(u"VALUES"_s, kValues),
      QRegularExpression::CaseInsensitiveOption);
  return kTerm;
}

QStringList values_in(const QString& text) {
  static const QRegularExpression kValue(uR"x("([^"]*)"|([^,"]+))x"_s);
  QStringList values;
  for (auto found = kValue.globalMatch(text); found.hasNext();) {
    const auto value = found.next();
    values.append(value.captured(1) + value.captured(2).trimmed());
  }
  return values;
}

Relation relation_of(const QString& sign) {
  for (const Relation relation :
       {Relation::Less, Relation::AtMost, Relation::Greater, Relation::AtLeast})
    if (sign == to_qstring(kSigns[relation])) return relation;
  return Relation::Equal;
}

QueryTerm term_of(const QRegularExpressionMatch& match) {
  QueryTerm term;
  const QString sign = match.captured(u"sign"_s);
  term.negated = match.captured(u"not"_s).isEmpty() == (sign == u"!="_s);
  term.field = match.captured(u"field"_s).toLower();
  term.relation = relation_of(sign);
  term.values = values_in(match.captured(term.field.isEmpty() ? u"word"_s : u"values"_s));
  const QString first = !match.captured(u"not"_s).isEmpty() ? u"not"_s
                        : term.field.isEmpty()              ? u"word"_s
                                                            : u"field"_s;
  term.start = match.capturedStart(first);
  term.length = match.capturedEnd() - term.start;
  return term;
}

}  // namespace

QString QueryTerm::text() const {
  QStringList written;
  for (const QString& value : values) written.append(quoted(value));
  const QString all = written.join(u',');
  return field.isEmpty() ? all : field + to_qstring(kSigns[relation]) + all;
}

Query parse_query(const QString& line) {
  Query query;
  qsizetype at = 0;
  while (at < line.size()) {
    const auto match = term_pattern().match(line, at, QRegularExpression::NormalMatch,
                                            QRegularExpression::AnchorAtOffsetMatchOption);
    if (!match.hasMatch()) break;
    query.terms.push_back(term_of(match));
    at = match.capturedEnd();
  }
  static const QRegularExpression kSeparators(uR"(^[\s,;]*)"_s);
  at += kSeparators.match(line.mid(at)).capturedLength();
  if (at == line.size()) return query;
  // A sign without a value behind it follows what was read as a word.
  const bool follows = !query.terms.empty() && query.terms.back().field.isEmpty();
  if (follows) at = query.terms.back().start;
  if (follows) query.terms.pop_back();
  query.unread = line.mid(at).trimmed();
  return query;
}

QString Query::problem() const {
  if (unread.isEmpty()) return {};
  return QCoreApplication::translate(
             "Query",
             "“%1” cannot be read: write a field, a sign and a value, as in tp=8, pp>=4 or "
             "memory<70 GB, or a word")
      .arg(unread);
}

QString quoted(const QString& value) {
  static const QRegularExpression kSafe(uR"(^[^\s,;"=<>!-][^\s,;"=<>!]*$)"_s);
  static const QRegularExpression kAmount(
      uR"(^-?[\d.]+( (UNITS))?$)"_s.replace(u"UNITS"_s, unit_pattern()));
  const bool safe = kSafe.match(value).hasMatch() && value != u"not"_s;
  return safe || kAmount.match(value).hasMatch() ? value : u'"' + value + u'"';
}

bool holds(Relation relation, double left, double right) {
  // A figure that is shown as 16.9 is a product of tenths, which is not the nearest double of 16.9.
  const bool same = std::abs(left - right) <= 1e-9 * std::max(std::abs(left), std::abs(right));
  switch (relation) {
    case Relation::Equal:
      return same;
    case Relation::Less:
      return left < right && !same;
    case Relation::AtMost:
      return left < right || same;
    case Relation::Greater:
      return left > right && !same;
    case Relation::AtLeast:
      return left > right || same;
  }
  return false;
}

std::optional<double> number_in(const QString& value, const QString& unit) {
  static const QRegularExpression kNumber(uR"(^(-?[\d.]+(?:e[+-]?\d+)?)\s*([a-z%]*)$)"_s,
                                          QRegularExpression::CaseInsensitiveOption);
  const auto match = kNumber.match(value);
  bool is_number = false;
  const double number = match.captured(1).toDouble(&is_number);
  if (!is_number) return std::nullopt;
  const QString found = match.captured(2);
  if (found.isEmpty()) return number;
  for (const Unit& each : kUnits) {
    if (unit == to_qstring(each.of) &&
        found.compare(to_qstring(each.name), Qt::CaseInsensitive) == 0)
      return number * each.factor;
  }
  return std::nullopt;
}

QString figure_name(const QString& name) {
  for (const auto& [figure, field] : kNames)
    if (name == to_qstring(field)) return to_qstring(figure);
  return name;
}

QString plan_field_name(const QString& name) {
  for (const auto& [figure, field] : kNames)
    if (name == to_qstring(figure)) return to_qstring(field);
  return name;
}

}  // namespace shardwright::gui
