// A spin box for counts that come in powers of two.
#pragma once

#include <QSpinBox>

namespace shardwright::gui {

// The arrows and the wheel go to the next power of two; any number may be typed.
class PowerSpinBox : public QSpinBox {
  Q_OBJECT

 public:
  explicit PowerSpinBox(QWidget* parent = nullptr);

  // What follows the number, and what follows 1.
  void set_unit(const QString& unit, const QString& unit_of_one);
  void stepBy(int steps) override;
};

}  // namespace shardwright::gui
