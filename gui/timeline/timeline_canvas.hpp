// The painted timeline with the mouse and the keys that it has beside those of NavigableArea.
//
//   wheel, over the axis             scroll the rows, zoom
//   drag, Enter                      select a range, zoom to it
//   left, right, up, down            select the op beside the selected one
//   F                                centre the selected op, then fit it
//   click on a rank's name           fold or unfold the rank
//   drag of a name, Alt + up, down   move the row; Alt + Shift + up, down moves its rank
//   right click                      open a menu
#pragma once

#include <QPixmap>
#include <memory>
#include <vector>

#include "core/program/program.hpp"
#include "gui/models/background_job.hpp"
#include "gui/painting/navigable_view.hpp"
#include "gui/timeline/causal_order.hpp"
#include "gui/timeline/span_text.hpp"
#include "gui/timeline/timeline_painter.hpp"

namespace shardwright::gui {

// What each span of the timelines waited for, and the ops that determine the end of their steps.
struct SpanOrders {
  // One for each side.
  std::vector<CausalOrder> sides;
  std::vector<SpanRef> critical_path;
};

class TimelineCanvas : public NavigableView<TimelineScene> {
  Q_OBJECT

 public:
  explicit TimelineCanvas(QWidget* parent = nullptr);

  void set_timelines(std::vector<std::shared_ptr<const Timeline>> timelines,
                     std::shared_ptr<const Program> program, const RankLimits& limits,
                     const std::vector<sim::ReservedMemory>& reserved,
                     const QStringList& names = {});
  void set_filter(const SpanQuery& filter);
  // See TimelineTracks::set_difference().
  void set_difference(std::shared_ptr<const TimelineDifference> difference);
  void set_matches(const std::vector<SpanRef>& matches);
  void set_show_arrows(bool show);
  void set_show_critical_path(bool show);

  const TimelineTracks& tracks() const { return tracks_; }
  // The path is found in the background after new timelines; empty until then.
  std::vector<SpanRef> critical_path() const {
    return orders_ ? orders_->critical_path : std::vector<SpanRef>();
  }
  // True while it is looked for.
  bool is_busy() const { return order_job_.is_running(); }

  void select_range(double from, double to);
  void clear_range();
  void select_op(SpanRef ref);
  void fold(const QString& rank_label, bool folded);
  void pin(const Track& track, bool pinned);
  // Moves a track to another place among its like (TimelineTracks::move).
  void move(const Track& track, std::size_t position);
  void nudge(const Track& track, int step);
  void arrange(const TimelineTracks::Arrangement& arrangement);
  void reveal(SpanRef ref);
  // Scrolls to the rank with this label, and unfolds it.
  void scroll_to(const QString& label);
  // The description of a span that its tool tip and the details show.
  QString text_of(SpanRef ref) const;
  std::optional<SpanRef> item_at(const QPointF& position) const override;
  const Track* track_at(const QPointF& position) const;
  void mark_moment(std::optional<double> moment);

  QSize sizeHint() const override { return {1000, 600}; }

 Q_SIGNALS:
  // Times are in seconds, positions those of the viewport. A range that is dragged is selected anew
  // as it changes, and once more when it is let go.
  void range_selected(double from, double to);
  void range_cleared();
  void op_selected(shardwright::gui::SpanRef ref);
  void op_cleared();
  // The critical path has been looked for.
  void ordered();
  // Emitted when other rows are shown, or the same ones in another order.
  void rows_changed();
  void menu_wanted(QPointF position);

 protected:
  bool is_empty() const override { return tracks_.empty(); }
  QRectF plot() const override { return geometry().plot; }
  void paint(QPainter& painter) override;
  QString tool_tip_at(const QPointF& position) const override;
  void lay_out() override { set_rows_height(tracks_.height()); }
  void part_changed() override;
  void selection_changed() override;
  void click(const QPointF& position) override;
  bool begin_drag(const QPointF& position) override;
  void drag_to(const QPointF& position) override;
  void end_drag(const QPointF& position) override;
  void cancel_drag() override;
  bool wheel_zooms_at(const QPointF& position) const override;
  bool double_click_fits_at(const QPointF& position) const override;
  void contextMenuEvent(QContextMenuEvent* event) override;

 private:
  TimelineGeometry geometry() const { return {room(), scene_.legend, scene_.widest_name}; }
  std::optional<SpanRef> first_in_view() const;
  std::optional<SpanRef> beside(SpanRef ref, int step) const;
  std::optional<SpanRef> below(SpanRef ref, int step) const;
  void add_keys();
  void select_neighbour(bool in_row, int step);
  void centre_or_fit();
  void nudge_selected(int step, bool rank);
  void fold_at(const QPointF& position);
  void drag_row(const QPointF& position);
  void order_changed();
  // Sorting a million spans by their waits takes too long for the window's thread.
  void order_spans();
  void take_orders(std::shared_ptr<const SpanOrders> orders);
  void tracks_changed();
  void paint_from_backing(QPainter& painter);

  TimelineTracks tracks_;
  std::shared_ptr<const Program> program_;
  // Null until the waits of the timelines are found.
  std::shared_ptr<const SpanOrders> orders_;
  std::vector<SpanRef> matches_;
  QPixmap backing_;
  bool backing_is_old_ = true;
  std::optional<Track> dragged_;
  BackgroundJob<SpanOrders> order_job_;
};

}  // namespace shardwright::gui
