// Widgets beside each other, and in a further line where there is no more room.
#pragma once

#include <QLayout>
#include <vector>

namespace shardwright::gui {

// Each has the width that it asks for, at least its least one; those that expand share what is left
// of their line. The line of a widget that is wider than the whole is cut to it.
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
