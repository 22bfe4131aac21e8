// A spin box for amounts of memory.
#pragma once

#include <QDoubleSpinBox>

namespace shardwright::gui {

// GB of 1e9 bytes, to the byte: whatever is typed is kept, and shown without trailing zeros.
class GigabyteSpinBox : public QDoubleSpinBox {
  Q_OBJECT

 public:
  explicit GigabyteSpinBox(QWidget* parent = nullptr);

  QString textFromValue(double value) const override;
};

}  // namespace shardwright::gui
