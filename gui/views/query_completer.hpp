// Completes the term of a query that is typed.
#pragma once

#include <QCompleter>
#include <QStringList>

class QLineEdit;
class QStringListModel;

namespace shardwright::gui {

// Offers the fields and values that begin as the term before the cursor does, and writes the chosen
// one in its place. The line, which owns the completer, holds a query (gui/models/query.hpp).
class QueryCompleter : public QCompleter {
  Q_OBJECT

 public:
  // `completions` are such as "tp=", "kind=gemm".
  QueryCompleter(QLineEdit* line, const QStringList& completions);

  void offer(const QStringList& completions);

  QStringList splitPath(const QString& path) const override;
  QString pathFromIndex(const QModelIndex& index) const override;

 private:
  QLineEdit* line_;
  QStringListModel* completions_;
  // What stands before and behind the part of the line that a completion replaces, and the field
  // that completions repeat.
  mutable QString before_, after_, field_;
};

}  // namespace shardwright::gui
