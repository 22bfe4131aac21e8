// A tool button that is on or off.
#pragma once

#include <QToolButton>

namespace shardwright::gui {

// A button that is on is tinted and underlined: the sunken look of a dark theme is hard to tell from
// the raised one.
class ToggleButton : public QToolButton {
  Q_OBJECT

 public:
  explicit ToggleButton(QWidget* parent = nullptr);

 protected:
  void paintEvent(QPaintEvent* event) override;
};

}  // namespace shardwright::gui
