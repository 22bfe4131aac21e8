// The arrangement of widgets in the views.
#pragma once

#include <QLayout>
#include <QSplitter>
#include <initializer_list>
#include <vector>

class QVBoxLayout;

namespace shardwright::gui {

// Return a pane without margins that holds these widgets from left to right, or from top to bottom.
// `grows` is the widget that gets the room that is left.
QWidget* row_of(std::initializer_list<QWidget*> widgets, const QWidget* grows = nullptr);
QWidget* column_of(std::initializer_list<QWidget*> widgets, const QWidget* grows = nullptr);

// Returns a pane with a bold title above its content, and a note between them if there is one.
QWidget* titled(const QString& title, QWidget* content, QWidget* note = nullptr);

// Fills `view`, which has no layout yet, with a column that is scrolled if the dock is too low for
// it. Returns the layout of the column.
QVBoxLayout* scrolled_column(QWidget& view);

// Panes beside each other with handles between them, or below each other if the row is too narrow.
class PaneRow : public QSplitter {
  Q_OBJECT

 public:
  // `sizes` are the shares of the panes while they stand beside each other.
  PaneRow(std::initializer_list<QWidget*> panes, const QList<int>& sizes,
          QWidget* parent = nullptr);

  // The least height of a pane that stands below another.
  void set_stacked_height(int height) { stacked_height_ = height; }
  bool is_stacked() const { return orientation() == Qt::Vertical; }
  // The row may be as narrow as its widest pane, and becomes higher then.
  QSize minimumSizeHint() const override;

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  int width_beside_each_other() const;
  void arrange();

  QList<int> sizes_;
  int stacked_height_ = 260;
};

// Widgets beside each other, in further lines if one has too little room. Each has the width that
// it asks for, at least its minimum; widgets that expand share the rest of their line. The layout
// cuts a widget that is wider than itself.
class FlowLayout : public QLayout {
  Q_OBJECT

 public:
  using QLayout::QLayout;
  ~FlowLayout() override;

  void addItem(QLayoutItem* item) override { items_.push_back(item); }
  int count() const override { return static_cast<int>(items_.size()); }
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
