// The terms of a filter line as chips. A click on a chip takes its term out of the line.
#pragma once

#include <QString>
#include <QWidget>

class QLineEdit;

namespace shardwright::gui {

// Follows the line, which holds a query (gui/models/query.hpp). It is hidden while the line has no
// terms.
class FilterChips : public QWidget {
  Q_OBJECT

 public:
  explicit FilterChips(QLineEdit* line, QWidget* parent = nullptr);

  // Appends a term to the line unless the line has it already.
  void add(const QString& term);

 private:
  void follow_line();
  void take_out(qsizetype start, qsizetype length);

  QLineEdit* line_;
};

}  // namespace shardwright::gui
