// The plot of plans with the boxes that choose its axes.
#pragma once

#include <QWidget>

class QComboBox;
class QLabel;
class QSettings;

namespace shardwright::gui {

class EmptyState;
class PlanScatter;

class ScatterPane : public QWidget {
  Q_OBJECT

 public:
  explicit ScatterPane(QWidget* parent = nullptr);

  PlanScatter& scatter() const { return *scatter_; }
  // The plot, or the reason why it shows nothing.
  EmptyState& points() const { return *points_; }
  // "Memory (GB) against Step (s)".
  QString title() const;

  // Names what the plans train on in the lists of axes.
  void name_accelerators(const char* word);

  QSize minimumSizeHint() const override;

  void save(QSettings& settings) const;
  void restore(const QSettings& settings);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  // `figure` is the first choice. Names are offered for the colour alone.
  QComboBox* create_axis(const QString& id, const QString& figure, bool with_names);
  void apply_axes();
  // The height of the pane without the hint, with a plot of so many lines of text.
  int height_with(int scatter_lines) const;

  PlanScatter* scatter_;
  EmptyState* points_;
  QComboBox *x_, *y_, *colour_;
  QLabel* hint_;
};

}  // namespace shardwright::gui
