#include "gui/timeline/span_query.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

constexpr int kQueriedKinds = static_cast<int>(OpKind::Receive) + 1;

template <class E>
QStringList value_names(int count) {
  QStringList names;
  for (int i = 0; i < count; ++i) names.append(to_qstring(name_of(static_cast<E>(i))));
  return names;
}

// The place of `name` among `names`, in their spelling with or without underscores.
std::optional<int> place_among(const QString& name, const QStringList& names) {
  for (int i = 0; i < names.size(); ++i) {
    QString known = names[i];
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
  SpanQuery query;
  query.text_ = text.simplified();
  const Query parsed = parse_query(query.text_);
  QStringList found;
  for (const QueryTerm& each : parsed.terms) {
    Term term;
    const QString problem = read_term(each, term);
    if (problem.isEmpty()) query.terms_.push_back(std::move(term));
    if (!problem.isEmpty()) found.append(problem);
  }
  if (!parsed.unread.isEmpty()) found.append(parsed.problem());
  if (problems != nullptr) problems->append(found);
  return query;
}

QString SpanQuery::read_term(const QueryTerm& query, Term& term) {
  static const std::pair<const char*, Field> kFields[] = {
      {"", Field::Name},         {"name", Field::Name},     {"kind", Field::Kind},
      {"stream", Field::Stream}, {"phase", Field::Phase},   {"group", Field::Group},
      {"layer", Field::Layer},   {"mb", Field::Microbatch}, {"microbatch", Field::Microbatch},
      {"rank", Field::Rank}};
  const auto* const field =
      std::find_if(std::begin(kFields), std::end(kFields),
                   [&](const auto& each) { return query.field == to_qstring(each.first); });
  if (field == std::end(kFields))
    return u"“%1” is not a field; fields are name, kind, stream, phase, group, layer, mb and rank"_s
        .arg(query.field);
  term.field = field->second;
  term.negated = query.negated;
  for (const QString& value : query.values) {
    QString problem = read_value(value, query.relation, term);
    if (!problem.isEmpty()) return problem;
  }
  return {};
}

QString SpanQuery::read_value(const QString& value, Relation relation, Term& term) {
  QStringList names;
  switch (term.field) {
    case Field::Name:
      break;
    case Field::Kind:
      names = value_names<OpKind>(kQueriedKinds);
      break;
    case Field::Stream:
      names = value_names<Stream>(kStreams);
      break;
    case Field::Phase:
      names = value_names<Phase>(kPhases);
      break;
    case Field::Group:
      names = value_names<Group>(kGroups);
      break;
    default:
      return read_number(value, relation, term);
  }
  if (relation != Relation::Equal) return u"“%1”: only numbers are compared by size"_s.arg(value);
  if (term.field == Field::Name) {
    term.names.push_back(value.toLower().toStdString());
  } else if (const std::optional<int> bit = place_among(value, names)) {
    term.values |= std::uint64_t{1} << static_cast<unsigned>(*bit);
  } else {
    return u"“%1” is none of %2"_s.arg(value, names.join(u", "_s));
  }
  return {};
}

QString SpanQuery::read_number(const QString& value, Relation relation, Term& term) {
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const auto dash = relation == Relation::Equal ? value.indexOf(u'-', 1) : -1;
  bool first_good = false, last_good = false;
  const std::int64_t first = (dash < 0 ? value : value.left(dash)).toLongLong(&first_good);
  const std::int64_t last = (dash < 0 ? value : value.mid(dash + 1)).toLongLong(&last_good);
  if (!first_good || !last_good) return u"“%1” is no number"_s.arg(value);
  switch (relation) {
    case Relation::Equal:
      term.ranges.push_back({first, last});
      break;
    case Relation::Less:
      term.ranges.push_back({kLeast, first - 1});
      break;
    case Relation::AtMost:
      term.ranges.push_back({kLeast, first});
      break;
    case Relation::Greater:
      term.ranges.push_back({first + 1, kMost});
      break;
    case Relation::AtLeast:
      term.ranges.push_back({first, kMost});
  }
  return {};
}

QStringList span_completions() {
  QStringList completions = {u"name="_s, u"layer="_s, u"mb="_s, u"rank="_s};
  const auto add = [&](const char* field, const auto& name_at, int count) {
    completions.append(to_qstring(field) + u'=');
    for (int i = 0; i < count; ++i)
      completions.append(u"%1=%2"_s.arg(to_qstring(field), to_qstring(name_at(i))));
  };
  add(
      "kind", [](int i) { return name_of(static_cast<OpKind>(i)); }, kQueriedKinds);
  add(
      "stream", [](int i) { return name_of(static_cast<Stream>(i)); }, kStreams);
  add(
      "phase", [](int i) { return name_of(static_cast<Phase>(i)); }, kPhases);
  add(
      "group", [](int i) { return name_of(static_cast<Group>(i)); }, kGroups);
  return completions;
}

QStringList terms_of(const Span& span) {
  QStringList terms;
  const auto add = [&](const char* field, const QString& value) {
    terms.append(u"%1=%2"_s.arg(to_qstring(field), value));
  };
  const QString name = to_qstring(span.name);
  // No value holds a quotation mark.
  if (!name.isEmpty() && !name.contains(u'"')) add("name", quoted(name));
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
