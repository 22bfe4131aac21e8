// The language of the lines in which plans and ops are filtered and plans are constrained.
//
// Terms, which must all hold, are separated by blanks, commas or semicolons:
//   tp=8  pp>=4  zero!=3   a field, one of = != < <= > >=, and a value
//   memory<70 GB           a number may have a unit behind it
//   kind=gemm,attention    commas without blanks separate alternatives
//   qkv                    a word; what it is looked for in depends on the line
//   not zero=3  -full      "not" or a minus in front turns a term round
//   name="a b"             quotation marks keep blanks and signs together
#pragma once

#include <QString>
#include <QStringList>
#include <cstdint>
#include <optional>
#include <vector>

namespace shardwright::gui {

enum class Relation : std::uint8_t { Equal, Less, AtMost, Greater, AtLeast };

struct QueryTerm {
  bool negated = false;
  // In lower case; empty if the term is a word, or alternatives of words.
  QString field;
  Relation relation = Relation::Equal;
  // The values have no quotation marks here.
  QStringList values;
  // Where it stands in its line.
  qsizetype start = 0, length = 0;

  // The term without its negation, as it may be typed.
  QString text() const;
};

struct Query {
  std::vector<QueryTerm> terms;
  // The line from the first term on that cannot be read; empty if all can.
  QString unread;

  // What is wrong with the line; empty if nothing is.
  QString problem() const;
};

Query parse_query(const QString& line);

// Returns the value in quotation marks if it would not be read as one value without.
QString quoted(const QString& value);

// True if `left` stands in the relation to `right`.
bool holds(Relation relation, double left, double right);

// Returns a value as a number of `unit`: "70 GB" is 70 in "GB". A number alone is in `unit`, and
// MB are converted to GB. Returns nothing if the value is no number or cannot be converted.
std::optional<double> number_in(const QString& value, const QString& unit);

// Queries on plans and constraints call some fields by different names. Both return the name that
// the one or the other uses for a field, or `name` itself where both use the same.
QString figure_name(const QString& name);
QString plan_field_name(const QString& name);

}  // namespace shardwright::gui
