#include "gui/views/power_spin_box.hpp"

namespace shardwright::gui {
namespace {

int power_above(int value, int most) {
  int power = 1;
  while (power <= value && power <= most / 2) power *= 2;
  return power > value ? power : most;
}

int power_below(int value, int least) {
  int power = 1;
  while (power * 2 < value && power < (1 << 30)) power *= 2;
  return value <= 1 ? least : power;
}

}  // namespace

PowerSpinBox::PowerSpinBox(QWidget* parent) : QSpinBox(parent) {
  setGroupSeparatorShown(true);
}

void PowerSpinBox::set_unit(const QString& unit, const QString& unit_of_one) {
  const auto follow = [=, this](int count) { setSuffix(count == 1 ? unit_of_one : unit); };
  connect(this, &QSpinBox::valueChanged, this, follow);
  follow(value());
}

void PowerSpinBox::stepBy(int steps) {
  interpretText();
  int next = value();
  for (; steps > 0; --steps) next = power_above(next, maximum());
  for (; steps < 0; ++steps) next = power_below(next, minimum());
  setValue(next);
}

QString PowerSpinBox::typed_of(const QString& text) const {
  const bool has_unit = !suffix().isEmpty() && text.endsWith(suffix());
  return (has_unit ? text.chopped(suffix().size()) : text).trimmed();
}

QValidator::State PowerSpinBox::validate(QString& input, int& position) const {
  const QString word = specialValueText(), typed = typed_of(input);
  if (!word.isEmpty() && !typed.isEmpty() && word.startsWith(typed, Qt::CaseInsensitive))
    return typed.size() == word.size() ? QValidator::Acceptable : QValidator::Intermediate;
  return QSpinBox::validate(input, position);
}

int PowerSpinBox::valueFromText(const QString& text) const {
  const QString word = specialValueText();
  if (!word.isEmpty() && word.compare(typed_of(text), Qt::CaseInsensitive) == 0) return minimum();
  return QSpinBox::valueFromText(text);
}

}  // namespace shardwright::gui
