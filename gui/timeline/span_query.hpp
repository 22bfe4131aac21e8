// A query for spans, in the language of gui/models/query.hpp:
//   qkv                  the op's name contains "qkv"
//   kind=gemm,attention  one of these kinds
//   stream=compute       also phase=, group=
//   layer=3  mb=0-7      a number or a range; also rank=
//   layer>=40            also <, <=, >
#pragma once

#include <QString>
#include <QStringList>
#include <cstdint>
#include <string>
#include <vector>

#include "core/timeline/timeline.hpp"
#include "gui/models/query.hpp"

namespace shardwright::gui {

class SpanQuery {
 public:
  // Leaves out terms that cannot be read, and lists them in `problems`.
  static SpanQuery parse(const QString& text, QStringList* problems = nullptr);

  bool matches(const Span& span) const;
  bool empty() const { return terms_.empty(); }
  const QString& text() const { return text_; }

 private:
  enum class Field : std::uint8_t { Name, Kind, Stream, Phase, Group, Layer, Microbatch, Rank };
  struct NumberRange {
    std::int64_t first = 0, last = 0;
  };
  struct Term {
    Field field = Field::Name;
    bool negated = false;
    // The alternatives of Name.
    std::vector<std::string> names;
    // A bit for each alternative of Kind, Stream, Phase and Group.
    std::uint64_t values = 0;
    // The alternatives of Layer, Microbatch and Rank.
    std::vector<NumberRange> ranges;
  };

  // Return what is wrong with a term, or with one of its values.
  static QString read_term(const QueryTerm& query, Term& term);
  static QString read_value(const QString& value, Relation relation, Term& term);
  static QString read_number(const QString& value, Relation relation, Term& term);
  static bool holds(const Term& term, const Span& span);

  QString text_;
  std::vector<Term> terms_;
};

// The fields and values that a line may be completed to.
QStringList span_completions();

// Returns a term for each field of a span that it matches, such as "kind=gemm", "layer=3".
QStringList terms_of(const Span& span);

}  // namespace shardwright::gui
