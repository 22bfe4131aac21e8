// Widgets beside each other, in further lines if one has no room for all.
#pragma once

#include <QLayout>
#include <vector>

namespace shardwright::gui {

// Each widget has the width that it asks for, at least its minimum; widgets that expand share the
// rest of their line. A widget that is wider than the layout is cut to its width.
class FlowLayout : public QLayout {
  Q_OBJECT

 public:
  explicit FlowLayout(QWidget* parent = nullptr);
  ~FlowLayout() override;

  void addItem(QLayoutItem* item) override;
  int count() const override;
  QLayoutItem* itemAt(int index) const override;
  QLayoutItem* takeAt(int index) override;
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;
  QSize minimumSize() const override;
  QSize sizeHint() const override;
  void setGeometry(const QRect& rect) override;

 private:
  using Line = std::vector<QLayoutItem*>;
  std::vector<Line> lines(int width) const;
  void place(const Line& line, const QRect& rect) const;

  std::vector<QLayoutItem*> items_;
};

}  // namespace shardwright::gui
