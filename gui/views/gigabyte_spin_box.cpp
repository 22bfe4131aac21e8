#include "gui/views/gigabyte_spin_box.hpp"

namespace shardwright::gui {
namespace {

constexpr int kDecimalsOfAByte = 9;

}  // namespace

GigabyteSpinBox::GigabyteSpinBox(QWidget* parent) : QDoubleSpinBox(parent) {
  setDecimals(kDecimalsOfAByte);
  setSuffix(tr(" GB"));
}

QString GigabyteSpinBox::textFromValue(double value) const {
  QLocale plain = locale();
  plain.setNumberOptions(plain.numberOptions() | QLocale::OmitGroupSeparator);
  return plain.toString(value, 'f', QLocale::FloatingPointShortest);
}

}  // namespace shardwright::gui
