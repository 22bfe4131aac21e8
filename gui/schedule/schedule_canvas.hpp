// The painted schedule with the mouse and the keys that it has beside those of NavigableArea.
//
//   drag, left, right, Home, End   move the moment of the replay
//   Space                          play, pause
//   Esc                            leave the replay
//   drag in the overview           pan
#pragma once

#include "gui/painting/navigable_view.hpp"
#include "gui/schedule/schedule_painter.hpp"

namespace shardwright::gui {

class ScheduleCanvas : public NavigableView<ScheduleScene> {
  Q_OBJECT

 public:
  explicit ScheduleCanvas(QWidget* parent = nullptr);

  void set_gantt(ScheduleGantt gantt);
  const ScheduleGantt& gantt() const { return gantt_; }
  void set_moment(std::optional<double> moment);
  // Moves the part in view such that the moment of the replay lies in it, with what comes next.
  void follow_moment();
  std::optional<BoxRef> item_at(const QPointF& position) const override;

  QSize sizeHint() const override { return {900, 320}; }
  QSize growth_of_picture() const override;

 Q_SIGNALS:
  void moment_changed(double seconds);
  void replay_left();
  void play_toggled();
  void slot_selected(int stage, const shardwright::gui::GanttBox& box);

 protected:
  bool is_empty() const override { return gantt_.empty(); }
  QRectF plot() const override { return geometry().plot; }
  void paint(QPainter& painter) override;
  QString tool_tip_at(const QPointF& position) const override;
  void lay_out() override;
  void selection_changed() override {}
  void click(const QPointF& position) override;
  bool begin_drag(const QPointF& /*position*/) override { return true; }
  void drag_to(const QPointF& position) override;
  QPointF zoom_centre() const override;

 private:
  ScheduleGeometry geometry() const { return {room(), gantt_, scene_.legend}; }
  double moment() const { return scene_.moment.value_or(0.0); }
  void scrub(double seconds);
  void step_to(double seconds);

  ScheduleGantt gantt_;
  // The window that a new schedule begins with; the user may have gone elsewhere.
  AxisWindow first_window_;
};

}  // namespace shardwright::gui
