#include "gui/models/scenario_problems.hpp"

#include <QRegularExpression>
#include <QStringList>
#include <algorithm>

#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

constexpr int kLongestProblem = 160;  // characters
constexpr std::size_t kMostTold = 4;  // problems of one field

// Long lists of names are left to the field's own list, where it has one; what was probably meant
// stays.
QString short_problem(const QString& text, bool has_list) {
  if (text.size() <= kLongestProblem) return text;
  const auto guess = text.indexOf(u"did you mean"_s);
  const auto list = text.indexOf(u"one of "_s);
  if (list < 0) return text.left(kLongestProblem) + u" …"_s;
  if (guess < 0 && !has_list) return text;
  if (guess < 0) return text.left(list) + u"one of the field's list"_s;
  // "…; expected one of a, b, … (did you mean "a"?)" becomes "…; did you mean "a"?".
  static const QRegularExpression kExpected(u"expected $"_s);
  const auto end = text.indexOf(u'?', guess);
  return text.left(list).remove(kExpected) + text.mid(guess, end - guess + 1);
}

}  // namespace

QString problems_text(const std::vector<Problem>& problems, bool has_list) {
  std::vector<Problem> told;
  for (std::size_t i = 0; i < std::min(problems.size(), kMostTold); ++i) {
    const Problem& problem = problems[i];
    const auto alike = std::find_if(told.begin(), told.end(), [&](const Problem& other) {
      return other.expected == problem.expected;
    });
    if (alike == told.end()) {
      told.push_back({"", problem.found, problem.expected});
    } else {
      alike->found += ", " + problem.found;
    }
  }
  QStringList lines;
  for (const Problem& problem : told) lines.append(short_problem(problem_text(problem), has_list));
  if (problems.size() > kMostTold) lines.append(u"and %1 more"_s.arg(problems.size() - kMostTold));
  return lines.join(u'\n');
}

}  // namespace shardwright::gui
