// The painted timeline with its mouse and keys.
//
//   Ctrl + wheel, wheel over the axis  zoom about the cursor      W S  zoom in, out
//   wheel                              scroll through the rows    A D  pan
//   Shift + wheel, middle drag         pan in time                Home fit all, also a double click
//   drag                               select a range             Enter zoom to it, Esc clears
//   click                              select an op               F    centre it, then fit it
//   left, right, up, down              the op beside it           Backspace  zoom back
//   click on a rank's name             folds it                   Alt + up, down  moves the row
//   drag of a name                     moves the row or the rank  … with Shift    and its rank
//   right click                        what else can be done
#pragma once

#include <QAbstractScrollArea>
#include <QPixmap>
#include <memory>
#include <vector>

#include "core/program/program.hpp"
#include "gui/timeline/causal_order.hpp"
#include "gui/timeline/device_limits.hpp"
#include "gui/timeline/timeline_painter.hpp"

namespace shardwright::gui {

class TimelineCanvas : public QAbstractScrollArea {
  Q_OBJECT

 public:
  explicit TimelineCanvas(QWidget* parent = nullptr);

  void set_timelines(std::vector<std::shared_ptr<const Timeline>> timelines,
                     std::shared_ptr<const Program> program, const DeviceLimits& limits,
                     const sim::ReservedMemory& reserved, const QStringList& names = {});
  void set_filter(const SpanQuery& filter);
  void set_matches(const std::vector<SpanRef>& matches);
  void set_show_arrows(bool show);
  void set_show_critical_path(bool show);

  const TimelineTracks& tracks() const { return tracks_; }
  const TimelineScene& scene() const { return scene_; }
  // The path is found when the event loop has come round once after new timelines.
  std::vector<SpanRef> critical_path() const { return critical_path_; }

  void show_window(double from, double to);
  void select_range(double from, double to);
  void clear_range();
  void select_op(SpanRef ref);
  void clear_op();
  void fold(const QString& rank_label, bool folded);
  void pin(const Track& track, bool pinned);
  // To another place among its like (TimelineTracks::move).
  void move(const Track& track, std::size_t position);
  void nudge(const Track& track, int step);
  void arrange(const TimelineTracks::Arrangement& arrangement);
  // Scrolls and pans until the selected op is in view.
  void reveal(SpanRef ref);
  // Scrolls to the rank with this label, and unfolds it.
  void scroll_to(const QString& label);
  // What a span is, as tool tip and details tell it.
  QString text_of(SpanRef ref) const;
  // What lies at a place of the viewport.
  std::optional<SpanRef> span_at(const QPointF& position) const;
  const Track* track_at(const QPointF& position) const;
  // A line at this time, in seconds.
  void mark_moment(std::optional<double> moment);

  QSize sizeHint() const override { return {1000, 600}; }

 Q_SIGNALS:
  void range_selected(double from, double to);  // in seconds
  void range_cleared();
  void op_selected(shardwright::gui::SpanRef ref);
  void op_cleared();
  void window_changed();
  void rows_changed();                 // others are shown, or in another order
  void menu_wanted(QPointF position);  // of the viewport

 protected:
  bool viewportEvent(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void changeEvent(QEvent* event) override;
  void scrollContentsBy(int dx, int dy) override;

 private:
  enum class Drag : std::uint8_t { None, Range, Pan, Row };

  TimelineGeometry geometry() const;
  double time_at(double x) const;
  QString tool_tip_at(const QPointF& position) const;
  void change_window(const TimeWindow& window, bool remember);
  void zoom(double time, double factor);
  // What a key does to the window shown, and to what is selected; false: nothing.
  bool move_window(int key);
  bool move_selection(int key);
  void select_neighbour(int key);
  void centre_or_fit();
  void nudge_selected(int step, bool rank);
  void fold_at(const QPointF& position);
  void drag_row(const QPointF& position);
  void drop_row(const QPointF& position);
  void leave_drag();
  void order_changed();
  void order_spans();
  void tracks_changed();
  void update_scroll_bars();
  void repaint_tracks();
  void paint_from_backing(QPainter& painter);

  TimelineTracks tracks_;
  TimelineScene scene_;
  std::shared_ptr<const Program> program_;
  DeviceLimits limits_;
  std::vector<CausalOrder> orders_;  // by side; none until the event loop has come round
  std::vector<SpanRef> critical_path_, matches_;
  std::vector<TimeWindow> earlier_;  // for Backspace
  Colours colours_;
  QPixmap backing_;
  bool backing_is_old_ = true;
  Drag drag_ = Drag::None;
  QPointF pressed_, last_;
  bool moved_ = false;
  bool on_name_ = false;          // the button went down there …
  std::optional<Track> dragged_;  // … on this one
  bool setting_bars_ = false;
};

}  // namespace shardwright::gui
