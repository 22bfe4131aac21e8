// A text that stands back behind what it explains.
#pragma once

#include <QLabel>

namespace shardwright::gui {

// Legible in light and dark: the colour of placeholders is too pale for what is to be read.
class HintLabel : public QLabel {
  Q_OBJECT

 public:
  explicit HintLabel(const QString& text = {}, QWidget* parent = nullptr);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void restyle();
};

}  // namespace shardwright::gui
