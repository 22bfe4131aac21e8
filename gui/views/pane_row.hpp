// Panes beside each other with handles between them; below each other where there is no room for
// that.
#pragma once

#include <QList>
#include <QSplitter>
#include <initializer_list>

namespace shardwright::gui {

class PaneRow : public QSplitter {
  Q_OBJECT

 public:
  // `sizes` are their shares while they stand beside each other.
  PaneRow(std::initializer_list<QWidget*> panes, const QList<int>& sizes,
          QWidget* parent = nullptr);

  bool is_stacked() const { return orientation() == Qt::Vertical; }
  // It may be as narrow as its widest pane, and becomes higher then.
  QSize minimumSizeHint() const override;

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  int width_beside_each_other() const;
  void arrange();

  QList<int> sizes_;
};

}  // namespace shardwright::gui
