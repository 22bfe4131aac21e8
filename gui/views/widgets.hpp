// Small widgets that several views use.
#pragma once

#include <QDoubleSpinBox>
#include <QLabel>
#include <QProgressBar>
#include <QSpinBox>
#include <QString>
#include <QToolButton>
#include <QWidget>
#include <functional>
#include <optional>
#include <utility>

#include "gui/models/table_text.hpp"

class QTableView;
class QTableWidget;

namespace shardwright::gui {

// Returns a new widget with an object name, by which sessions and tests know it.
template <class Widget, class... Arguments>
Widget* named(const QString& name, Arguments&&... arguments) {
  auto* widget = new Widget(std::forward<Arguments>(arguments)...);
  widget->setObjectName(name);
  return widget;
}

QLabel* wrapped_label(const QString& name);
QToolButton* tool_button(const QString& name, const QString& text, const QString& tip = {});
void set_text_colour(QWidget& widget, const QColor& colour);
void make_bold(QWidget& widget);
// Shows separators of thousands in a spin box while nobody types into it: writing them would move
// the cursor.
void separate_thousands(QAbstractSpinBox& field);
// Calls `fit` now, and again whenever the letters of the widget change.
void follow_letters(QWidget& widget, std::function<void()> fit);
// Gives the rows of a table the height of their letters.
void fit_rows_to_letters(QTableView& table);
// Lets the wheel scroll past a combo box or a spin box that has no focus.
void leave_wheel_to_scrolling(QWidget& field);

// The share of some work that is done.
class ShareBar : public QProgressBar {
  Q_OBJECT

 public:
  explicit ShareBar(QWidget* parent = nullptr);

  // Shows the bar, empty.
  void begin();
  // Moves the bar, from any thread, as long as there is one.
  std::function<void(double share)> reporter();
};

// A table of texts whose columns are as wide as their texts.
QTableWidget* text_table_widget(const QString& name);
// Shows the texts of `table` from its first row, and each as a tool tip as well.
void show_table(QTableWidget& widget, const TextTable& table);

// A text that stands back behind the one that it explains. The colour of placeholders would be too
// pale to read.
class HintLabel : public QLabel {
  Q_OBJECT

 public:
  explicit HintLabel(const QString& text = {}, QWidget* parent = nullptr);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void restyle();
};

// A line of text that ends in "…" if it has too little room. Its tool tip shows all of it.
class ElidedLabel : public QLabel {
  Q_OBJECT

 public:
  explicit ElidedLabel(QWidget* parent = nullptr);

  void show_text(const QString& text);
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
};

// A checkable button that is tinted and underlined while it is on: the sunken look of a dark theme
// is hard to tell from the raised one.
class ToggleButton : public QToolButton {
  Q_OBJECT

 public:
  explicit ToggleButton(QWidget* parent = nullptr);

 protected:
  void paintEvent(QPaintEvent* event) override;
};

// Amounts of memory in GB of 1e9 bytes, to the byte, without trailing zeros.
class GigabyteSpinBox : public QDoubleSpinBox {
  Q_OBJECT

 public:
  explicit GigabyteSpinBox(QWidget* parent = nullptr);

  QString textFromValue(double value) const override;
};

// Counts that come in powers of two: the arrows and the wheel go to the next one. The user may type
// any number, also as commands read it ("8k", "2M"), and specialValueText() in any case of its
// letters.
class PowerSpinBox : public QSpinBox {
  Q_OBJECT

 public:
  explicit PowerSpinBox(QWidget* parent = nullptr);

  // The words behind the number, and behind 1.
  void set_unit(const QString& unit, const QString& unit_of_one);
  void stepBy(int steps) override;

 protected:
  QValidator::State validate(QString& input, int& position) const override;
  int valueFromText(const QString& text) const override;

 private:
  QString typed_of(const QString& text) const;
  // The count of a text with a letter or a fraction; nothing if it is beyond the limits.
  std::optional<int> abbreviated_count(const QString& typed) const;
};

// Asks for the name of a file to write. Returns an empty name if the user cancels. A name without a
// suffix gets `suffix` before the dialog asks whether it may replace a file. `filter` is one of
// QFileDialog: "Plan files (*.json)".
QString ask_for_file(QWidget* parent, const QString& title, const QString& suggestion,
                     const QString& filter, const QString& suffix);

}  // namespace shardwright::gui
