// The painted schedule with its mouse and keys.
//
//   wheel                       zoom about the cursor      Space      play, pause
//   Shift + wheel, middle drag  pan                        left right the moment before, after
//   drag                        scrub the replay           Home End   start, end of the replay
//   click                       select a slot              W S A D    zoom, pan
//   double click                fit all                    Esc        leave the replay
//   drag in the overview        pan
#pragma once

#include <QWidget>

#include "gui/schedule/schedule_painter.hpp"

namespace shardwright::gui {

class ScheduleCanvas : public QWidget {
  Q_OBJECT

 public:
  explicit ScheduleCanvas(QWidget* parent = nullptr);

  // Leaves the replay and fits all.
  void set_gantt(ScheduleGantt gantt);
  const ScheduleGantt& gantt() const { return gantt_; }
  const ScheduleScene& scene() const { return scene_; }

  void set_moment(std::optional<double> moment);

  QSize sizeHint() const override { return {900, 320}; }
  QSize minimumSizeHint() const override;

 Q_SIGNALS:
  void moment_changed(double seconds);  // by mouse or keys
  void replay_left();
  void play_toggled();
  void slot_selected(int stage, const shardwright::gui::GanttBox& box);

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  ScheduleGeometry geometry() const;
  double time_at(double x) const;
  std::optional<BoxRef> box_at(const QPointF& position) const;
  QString tool_tip_at(const QPointF& position) const;
  void scrub(double seconds);
  void look_at(double x);
  void change_window(const TimeWindow& window);
  void show_first_window();

  ScheduleGantt gantt_;
  ScheduleScene scene_;
  Colours colours_;
  QPointF pressed_, last_;
  bool is_first_window_ = true;
  bool scrubs_ = false, pans_ = false, looks_ = false, moved_ = false;
};

}  // namespace shardwright::gui
