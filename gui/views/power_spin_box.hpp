// A spin box for counts that come in powers of two.
#pragma once

#include <QSpinBox>

namespace shardwright::gui {

// The arrows and the wheel go to the next power of two; any number may be typed, and the word that
// stands for the least one (specialValueText()), where there is one, in any case of its letters.
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
  // The typed text without the unit.
  QString typed_of(const QString& text) const;
};

}  // namespace shardwright::gui
