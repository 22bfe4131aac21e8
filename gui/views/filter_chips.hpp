// The terms of a filter line as chips. A click on a chip takes its term out of the line.
#pragma once

#include <QString>
#include <QWidget>

class QLineEdit;

namespace shardwright::gui {

// Follows the line, whose terms `separator` separates. Hidden while the line is empty.
class FilterChips : public QWidget {
  Q_OBJECT

 public:
  FilterChips(QLineEdit* line, QChar separator, QWidget* parent = nullptr);

  // Appends a term to the line unless the line has it already.
  void add(const QString& term);

 private:
  QStringList terms() const;
  void set_terms(const QStringList& terms);
  void follow_line();

  QLineEdit* line_;
  QChar separator_;
};

}  // namespace shardwright::gui
