// A line of text that ends in "…" where there is no room for all of it; its tool tip has it all.
#pragma once

#include <QLabel>

namespace shardwright::gui {

class ElidedLabel : public QLabel {
  Q_OBJECT

 public:
  explicit ElidedLabel(QWidget* parent = nullptr);

  void show_text(const QString& text);
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
};

}  // namespace shardwright::gui
