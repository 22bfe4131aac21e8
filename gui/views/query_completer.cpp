#include "gui/views/query_completer.hpp"

#include <QLineEdit>
#include <QRegularExpression>
#include <QStringListModel>
#include <utility>

#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

// Returns the field of alternatives that a term has so far, "kind=" of "kind=gemm,att", and what is
// typed behind it, "att"; of a first value or a field that is typed, nothing and all of it.
std::pair<QString, QString> begun_term(const QString& before_cursor) {
  static const QRegularExpression kBegun(
      uR"((?:^|[\s,;-])(?:(\w[\w-]*=)(?:[^\s,;"=<>]+,)+)?([^\s,;"<>]*)$)"_s);
  const auto match = kBegun.match(before_cursor);
  return {match.captured(1), match.captured(2)};
}

}  // namespace

QueryCompleter::QueryCompleter(QLineEdit* line, const QStringList& completions)
    : QCompleter(line), line_(line), completions_(new QStringListModel(completions, this)) {
  setModel(completions_);
  setCaseSensitivity(Qt::CaseInsensitive);
  line->setCompleter(this);
}

void QueryCompleter::offer(const QStringList& completions) {
  completions_->setStringList(completions);
}

// Keeps what stands around the term, because the line shows each completion that is highlighted.
QStringList QueryCompleter::splitPath(const QString& /*path*/) const {
  const QString line = line_->text();
  const int cursor = line_->cursorPosition();
  const auto [field, typed] = begun_term(line.left(cursor));
  field_ = field;
  before_ = line.left(cursor - typed.size());
  after_ = line.mid(cursor);
  const QString term = field + typed;
  // A list of nothing but what is typed would only be in the way.
  const QStringList begun = completions_->stringList().filter(QRegularExpression(
      u'^' + QRegularExpression::escape(term), QRegularExpression::CaseInsensitiveOption));
  const bool is_complete = begun.size() == 1 && begun.front() == term;
  return {typed.isEmpty() || is_complete ? QString(QChar::Null) : term};
}

QString QueryCompleter::pathFromIndex(const QModelIndex& index) const {
  return before_ + model()->data(index).toString().mid(field_.size()) + after_;
}

}  // namespace shardwright::gui
