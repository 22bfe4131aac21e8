// What every view of the window is: a widget that can hand over its data.
#pragma once

#include <QWidget>
#include <utility>

#include "gui/models/table_text.hpp"

namespace shardwright::gui {

class View : public QWidget {
  Q_OBJECT

 public:
  using QWidget::QWidget;

  // What is shown, as a table; empty if nothing is.
  virtual TextTable table() const = 0;
  // The same where making it may take long.
  virtual LazyTable lazy_table() const {
    TextTable made = table();
    const std::size_t rows = made.rows.size();
    return {rows, [made = std::move(made)](const std::stop_token&) { return made; }};
  }

 Q_SIGNALS:
  // For the window's message bar: an error in words, or empty to take it back.
  void problem(const QString& text);
};

}  // namespace shardwright::gui
