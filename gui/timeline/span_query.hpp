// The line in which people say which spans they mean.
//
// Terms are separated by blanks and all must hold; alternatives within a term by commas:
//   qkv                  the op's name contains "qkv"
//   kind=gemm,attention  one of these kinds
//   stream=compute       also phase=, group=
//   layer=3  mb=0-7      a number or a range; also rank=
//   -kind=gemm           a minus in front of a term turns it round
#pragma once

#include <QString>
#include <QStringList>
#include <cstdint>
#include <string>
#include <vector>

#include "core/timeline/timeline.hpp"

namespace shardwright::gui {

class SpanQuery {
 public:
  // What cannot be read is listed in `problems` and left out.
  static SpanQuery parse(const QString& text, QStringList* problems = nullptr);

  bool matches(const Span& span) const;
  bool empty() const { return terms_.empty(); }
  // The terms as they were typed.
  const QString& text() const { return text_; }

 private:
  enum class Field : std::uint8_t { Name, Kind, Stream, Phase, Group, Layer, Microbatch, Rank };
  struct NumberRange {
    std::int64_t first = 0, last = 0;
  };
  struct Term {
    Field field = Field::Name;
    bool negated = false;
    std::vector<std::string> names;   // Name
    std::uint64_t values = 0;         // Kind … Group: a bit each
    std::vector<NumberRange> ranges;  // Layer …
  };

  static bool read_values(const QString& value, Term& term, QString& problem);
  static bool holds(const Term& term, const Span& span);

  QString text_;
  std::vector<Term> terms_;
};

// The terms of one field each that a span matches, such as "kind=gemm", "layer=3".
QStringList terms_of(const Span& span);

}  // namespace shardwright::gui
