#include "gui/schedule/schedule_canvas.hpp"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QToolTip>
#include <QWheelEvent>
#include <cmath>

#include "gui/models/text.hpp"
#include "gui/painting/focus_frame.hpp"

namespace shardwright::gui {
namespace {

constexpr double kWheelStep = 120.0;  // of QWheelEvent::angleDelta, for one notch
constexpr double kZoomPerNotch = 1.25;
constexpr double kKeyZoom = 1.5;
constexpr double kPanShare = 0.15;  // of what is shown
constexpr double kClickDistance = 4.0;
constexpr int kLeastHeightPerStage = 16;
constexpr int kHeightAround = 80;  // summary, axis and legend

}  // namespace

ScheduleCanvas::ScheduleCanvas(QWidget* parent)
    : QWidget(parent), colours_(colours_for(palette())) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAccessibleName(QStringLiteral("Pipeline schedule"));
}

QSize ScheduleCanvas::minimumSizeHint() const {
  return {320, kHeightAround + kLeastHeightPerStage * static_cast<int>(gantt_.stages().size())};
}

void ScheduleCanvas::set_gantt(ScheduleGantt gantt) {
  gantt_ = std::move(gantt);
  scene_ = {};
  is_first_window_ = true;
  show_first_window();
  updateGeometry();
  update();
}

void ScheduleCanvas::show_first_window() {
  if (!gantt_.empty() && is_first_window_)
    scene_.window = first_window(gantt_, geometry().plot.width());
}

// How much is legible depends on the width, until the user shows something else.
void ScheduleCanvas::resizeEvent(QResizeEvent*) {
  show_first_window();
}

void ScheduleCanvas::set_moment(std::optional<double> moment) {
  if (gantt_.empty()) return;
  if (moment) moment = std::clamp(*moment, 0.0, gantt_.makespan());
  if (scene_.moment == moment) return;
  scene_.moment = moment;
  update();
}

ScheduleGeometry ScheduleCanvas::geometry() const {
  return {QSizeF(size()), gantt_};
}

double ScheduleCanvas::time_at(double x) const {
  const QRectF plot = geometry().plot;
  return scene_.window.time_at(std::clamp(x - plot.left(), 0.0, plot.width()), plot.width());
}

std::optional<BoxRef> ScheduleCanvas::box_at(const QPointF& position) const {
  const ScheduleGeometry geometry = this->geometry();
  if (gantt_.empty() || !geometry.plot.contains(position)) return std::nullopt;
  const auto stage =
      static_cast<std::size_t>((position.y() - geometry.plot.top()) / geometry.row_height);
  if (stage >= gantt_.stages().size()) return std::nullopt;
  const GanttStage& of_stage = gantt_.stages()[stage];
  const auto box = of_stage.at(time_at(position.x()));
  if (!box) return std::nullopt;
  const bool upper = position.y() < geometry.row(stage).center().y();
  const bool pair = of_stage.boxes[*box].lane == GanttLane::Lower && *box > 0;
  return BoxRef{stage, pair && upper ? *box - 1 : *box};
}

QString ScheduleCanvas::tool_tip_at(const QPointF& position) const {
  if (!gantt_.empty() && position.y() < geometry().axis.top()) return schedule_summary_tip(gantt_);
  const auto ref = box_at(position);
  if (!ref) return {};
  const GanttBox& box = gantt_.stages()[ref->stage].boxes[ref->box];
  QString text = QStringLiteral("<b>stage %1: %2 of microbatch %3</b>")
                     .arg(ref->stage)
                     .arg(QString::fromUtf8(title_of(box.phase)))
                     .arg(box.microbatch);
  if (gantt_.chunks() > 1) text += QStringLiteral("<br>chunk %1").arg(box.chunk);
  return text + QStringLiteral("<br>%1, from %2")
                    .arg(time_text(Seconds(box.finish - box.start)), time_text(Seconds(box.start)));
}

// The plot shows what lies around this place of the overview.
void ScheduleCanvas::look_at(double x) {
  const QRectF area = geometry().overview;
  TimeWindow window = scene_.window;
  const double middle = (x - area.left()) / area.width() * gantt_.makespan();
  window.pan(middle - 0.5 * (window.from + window.to));
  change_window(window);
}

void ScheduleCanvas::scrub(double seconds) {
  set_moment(seconds);
  if (scene_.moment) Q_EMIT moment_changed(*scene_.moment);
}

void ScheduleCanvas::change_window(const TimeWindow& window) {
  is_first_window_ = false;
  scene_.window = window;
  update();
}

bool ScheduleCanvas::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    QToolTip::showText(help->globalPos(), tool_tip_at(help->pos()), this);
    return true;
  }
  if (event->type() == QEvent::Leave && scene_.hovered) {
    scene_.hovered.reset();
    update();
  }
  return QWidget::event(event);
}

void ScheduleCanvas::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), colours_.base);
  if (gantt_.empty()) return;
  SchedulePainter(painter, gantt_, scene_, colours_, QSizeF(size())).paint();
  if (hasFocus()) paint_focus(painter, rect(), colours_);
}

void ScheduleCanvas::wheelEvent(QWheelEvent* event) {
  if (gantt_.empty()) return;
  const QPoint delta = event->angleDelta();
  const double notches = (delta.y() != 0 ? delta.y() : delta.x()) / kWheelStep;
  TimeWindow window = scene_.window;
  if (event->modifiers().testFlag(Qt::ShiftModifier) || delta.y() == 0) {
    window.pan(-notches * kPanShare * window.length());
  } else {
    window.zoom_about(time_at(event->position().x()), std::pow(kZoomPerNotch, notches));
  }
  change_window(window);
  event->accept();
}

void ScheduleCanvas::mousePressEvent(QMouseEvent* event) {
  pressed_ = last_ = event->position();
  moved_ = false;
  if (gantt_.empty()) return;
  pans_ = event->button() == Qt::MiddleButton;
  looks_ = event->button() == Qt::LeftButton && geometry().overview.contains(pressed_);
  if (looks_) return look_at(pressed_.x());
  scrubs_ = event->button() == Qt::LeftButton && pressed_.x() >= geometry().plot.left();
  if (scrubs_ && geometry().axis.contains(pressed_)) scrub(time_at(pressed_.x()));
}

void ScheduleCanvas::mouseMoveEvent(QMouseEvent* event) {
  const QPointF position = event->position();
  moved_ = moved_ || (position - pressed_).manhattanLength() > kClickDistance;
  if (looks_) {
    look_at(position.x());
  } else if (scrubs_ && moved_) {
    scrub(time_at(position.x()));
  } else if (pans_) {
    TimeWindow window = scene_.window;
    window.pan((last_.x() - position.x()) / geometry().plot.width() * window.length());
    change_window(window);
  } else if (const auto box = box_at(position); box != scene_.hovered) {
    scene_.hovered = box;
    update();
  }
  last_ = position;
}

void ScheduleCanvas::mouseReleaseEvent(QMouseEvent* event) {
  const bool clicked = scrubs_ && !moved_;
  scrubs_ = pans_ = looks_ = false;
  if (!clicked) return;
  if (const auto box = box_at(event->position()))
    Q_EMIT slot_selected(static_cast<int>(box->stage), gantt_.stages()[box->stage].boxes[box->box]);
}

void ScheduleCanvas::mouseDoubleClickEvent(QMouseEvent*) {
  if (!gantt_.empty()) change_window(TimeWindow::whole(gantt_.makespan()));
}

void ScheduleCanvas::keyPressEvent(QKeyEvent* event) {
  if (gantt_.empty()) return QWidget::keyPressEvent(event);
  const double moment = scene_.moment.value_or(0.0);
  TimeWindow window = scene_.window;
  const double middle = scene_.moment.value_or(0.5 * (window.from + window.to));
  switch (event->key()) {
    case Qt::Key_Space:
      Q_EMIT play_toggled();
      return;
    case Qt::Key_Right:
      return scrub(gantt_.next_event(moment));
    case Qt::Key_Left:
      return scrub(gantt_.previous_event(moment));
    case Qt::Key_Home:
      return scrub(0.0);
    case Qt::Key_End:
      return scrub(gantt_.makespan());
    case Qt::Key_Escape:
      set_moment(std::nullopt);
      Q_EMIT replay_left();
      return;
    case Qt::Key_W:
      window.zoom_about(middle, kKeyZoom);
      return change_window(window);
    case Qt::Key_S:
      window.zoom_about(middle, 1.0 / kKeyZoom);
      return change_window(window);
    case Qt::Key_A:
      window.pan(-kPanShare * window.length());
      return change_window(window);
    case Qt::Key_D:
      window.pan(kPanShare * window.length());
      return change_window(window);
    default:
      QWidget::keyPressEvent(event);
  }
}

void ScheduleCanvas::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() != QEvent::PaletteChange) return;
  colours_ = colours_for(palette());
  update();
}

}  // namespace shardwright::gui
