// A spin box for counts that come in powers of two.
#pragma once

#include <QSpinBox>

namespace shardwright::gui {

// The arrows and the wheel go to the next power of two; any number may be typed.
class PowerSpinBox : public QSpinBox {
  Q_OBJECT

 public:
  explicit PowerSpinBox(QWidget* parent = nullptr);

  void stepBy(int steps) override;
};

}  // namespace shardwright::gui
