#include "gui/timeline/span_query.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

constexpr int kQueriedKinds = static_cast<int>(OpKind::Receive) + 1;

// The value of an enumeration with this name, in its spelling with or without underscores.
template <class E>
std::optional<int> value_named(const QString& name, int count) {
  for (int i = 0; i < count; ++i) {
    QString known = to_qstring(name_of(static_cast<E>(i)));
    if (name.compare(known, Qt::CaseInsensitive) == 0) return i;
    if (name.compare(known.replace(u'_', u'-'), Qt::CaseInsensitive) == 0) return i;
  }
  return std::nullopt;
}

bool contains_ignoring_case(const std::string& text, const std::string& lower_part) {
  const auto lower = [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; };
  return std::search(text.begin(), text.end(), lower_part.begin(), lower_part.end(),
                     [&](char a, char b) {
                       return lower(static_cast<unsigned char>(a)) == static_cast<unsigned char>(b);
                     }) != text.end();
}

bool has_bit(std::uint64_t bits, int bit) {
  return (bits >> static_cast<unsigned>(bit) & 1U) != 0;
}

}  // namespace

SpanQuery SpanQuery::parse(const QString& text, QStringList* problems) {
  static const std::pair<const char*, Field> kFields[] = {
      {"name", Field::Name},     {"kind", Field::Kind},
      {"stream", Field::Stream}, {"phase", Field::Phase},
      {"group", Field::Group},   {"layer", Field::Layer},
      {"mb", Field::Microbatch}, {"microbatch", Field::Microbatch},
      {"rank", Field::Rank}};
  SpanQuery query;
  query.text_ = text.simplified();
  for (QString word : query.text_.split(u' ', Qt::SkipEmptyParts)) {
    Term term;
    term.negated = word.size() > 1 && word.startsWith(u'-');
    if (term.negated) word.remove(0, 1);
    const auto equals = word.indexOf(u'=');
    const QString key = equals < 0 ? u"name"_s : word.left(equals).toLower();
    const auto* const field =
        std::find_if(std::begin(kFields), std::end(kFields),
                     [&](const auto& each) { return key == to_qstring(each.first); });
    QString problem;
    if (field == std::end(kFields)) {
      problem =
          u"“%1” is not a field; fields are name, kind, stream, phase, group, layer, mb "
          "and rank"_s.arg(key);
    } else {
      term.field = field->second;
      if (read_values(word.mid(equals + 1), term, problem)) {
        query.terms_.push_back(std::move(term));
        continue;
      }
    }
    if (problems != nullptr) problems->append(problem);
  }
  return query;
}

bool SpanQuery::read_values(const QString& value, Term& term, QString& problem) {
  for (const QString& each : value.split(u',', Qt::SkipEmptyParts)) {
    std::optional<int> bit;
    switch (term.field) {
      case Field::Name:
        term.names.push_back(each.toLower().toStdString());
        continue;
      case Field::Kind:
        bit = value_named<OpKind>(each, kQueriedKinds);
        break;
      case Field::Stream:
        bit = value_named<Stream>(each, kStreams);
        break;
      case Field::Phase:
        bit = value_named<Phase>(each, kPhases);
        break;
      case Field::Group:
        bit = value_named<Group>(each, kGroups);
        break;
      default: {
        const auto dash = each.indexOf(u'-', 1);
        bool first_good = false, last_good = false;
        const std::int64_t first = (dash < 0 ? each : each.left(dash)).toLongLong(&first_good);
        const std::int64_t last = (dash < 0 ? each : each.mid(dash + 1)).toLongLong(&last_good);
        if (first_good && last_good) {
          term.ranges.push_back({first, last});
          continue;
        }
      }
    }
    if (!bit) {
      problem = u"“%1” is not a value of its field"_s.arg(each);
      return false;
    }
    term.values |= std::uint64_t{1} << static_cast<unsigned>(*bit);
  }
  if (term.names.empty() && term.values == 0 && term.ranges.empty()) {
    problem = u"a term has no value"_s;
    return false;
  }
  return true;
}

QStringList terms_of(const Span& span) {
  QStringList terms;
  const auto add = [&](const char* field, const QString& value) {
    terms.append(u"%1=%2"_s.arg(to_qstring(field), value));
  };
  // A blank or a comma would end the value.
  const QString name = to_qstring(span.name);
  const bool one_word =
      std::none_of(name.begin(), name.end(), [](QChar c) { return c.isSpace() || c == u','; });
  if (one_word && !name.isEmpty()) add("name", name);
  if (span.kernel < 0) {
    add("kind", to_qstring(name_of(span.kind)));
    add("phase", to_qstring(name_of(span.phase)));
  }
  add("stream", to_qstring(name_of(span.stream)));
  if (span.group) add("group", to_qstring(name_of(*span.group)));
  if (span.layer >= 0) add("layer", QString::number(span.layer));
  if (span.microbatch >= 0) add("mb", QString::number(span.microbatch));
  return terms;
}

bool SpanQuery::matches(const Span& span) const {
  return std::all_of(terms_.begin(), terms_.end(),
                     [&](const Term& term) { return holds(term, span) != term.negated; });
}

bool SpanQuery::holds(const Term& term, const Span& span) {
  const auto in_range = [&](std::int64_t number) {
    return std::any_of(term.ranges.begin(), term.ranges.end(), [&](const NumberRange& range) {
      return number >= range.first && number <= range.last;
    });
  };
  switch (term.field) {
    case Field::Name:
      return std::any_of(term.names.begin(), term.names.end(), [&](const std::string& part) {
        return contains_ignoring_case(span.name, part);
      });
    case Field::Kind:
      return span.kind_is_known && has_bit(term.values, static_cast<int>(span.kind));
    case Field::Stream:
      return has_bit(term.values, static_cast<int>(span.stream));
    case Field::Phase:
      return has_bit(term.values, static_cast<int>(span.phase));
    case Field::Group:
      return span.group && has_bit(term.values, static_cast<int>(*span.group));
    case Field::Layer:
      return in_range(span.layer);
    case Field::Microbatch:
      return in_range(span.microbatch);
    case Field::Rank:
      return in_range(span.rank);
  }
  return false;
}

}  // namespace shardwright::gui
