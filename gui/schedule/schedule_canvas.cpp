#include "gui/schedule/schedule_canvas.hpp"

#include <algorithm>
#include <cmath>

#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

// Where a moment that leaves the part in view stands in the next one, as shares of its width.
constexpr double kLeastAhead = 0.1, kMostAhead = 0.7;

}  // namespace

ScheduleCanvas::ScheduleCanvas(QWidget* parent)
    : NavigableView(u"Pipeline schedule"_s, Zoom::Horizontal, parent) {
  on_keys({Qt::Key_Space}, [this] { Q_EMIT play_toggled(); });
  on_keys({Qt::Key_Right}, [this] { step_to(gantt_.next_event(moment())); });
  on_keys({Qt::Key_Left}, [this] { step_to(gantt_.previous_event(moment())); });
  on_keys({Qt::Key_Home}, [this] { step_to(0.0); });
  on_keys({Qt::Key_End}, [this] { step_to(gantt_.makespan()); });
  on_keys({Qt::Key_Escape}, [this] {
    set_moment(std::nullopt);
    Q_EMIT replay_left();
    clear_selection();
  });
}

void ScheduleCanvas::set_gantt(ScheduleGantt gantt) {
  gantt_ = std::move(gantt);
  scene_ = {};
  scene_.legend = legend_of(gantt_);
  start_with(gantt_.makespan());
  first_window_ = scene_.window;
  lay_out();
  viewport()->update();
}

// The width decides how much of a step is legible, until the user shows something else.
void ScheduleCanvas::lay_out() {
  const ScheduleGeometry places = geometry();
  if (scene_.window == first_window_)
    scene_.window = first_window_ = first_window(gantt_, places.plot.width());
  set_rows_height(places.rows_height);
}

QSize ScheduleCanvas::growth_of_picture() const {
  return {0, hidden_height()};
}

void ScheduleCanvas::set_moment(std::optional<double> moment) {
  if (gantt_.empty()) return;
  if (moment) moment = std::clamp(*moment, 0.0, gantt_.makespan());
  if (scene_.moment == moment) return;
  scene_.moment = moment;
  viewport()->update();
}

std::optional<BoxRef> ScheduleCanvas::item_at(const QPointF& position) const {
  const ScheduleGeometry geometry = this->geometry();
  if (gantt_.empty() || !geometry.plot.contains(position)) return std::nullopt;
  const auto stage = static_cast<std::size_t>(
      (position.y() - geometry.plot.top() + scene_.rows.from) / geometry.row_height);
  if (stage >= gantt_.stages().size()) return std::nullopt;
  const GanttStage& of_stage = gantt_.stages()[stage];
  const auto box = of_stage.at(time_at(position.x()));
  if (!box) return std::nullopt;
  const bool upper = position.y() < geometry.row(stage, scene_.rows).center().y();
  const bool pair = of_stage.boxes[*box].lane == GanttLane::Lower && *box > 0;
  return BoxRef{stage, pair && upper ? *box - 1 : *box};
}

QString ScheduleCanvas::tool_tip_at(const QPointF& position) const {
  if (position.y() < geometry().axis.top()) return schedule_summary_tip(gantt_);
  const auto ref = item_at(position);
  if (!ref) return {};
  const GanttBox& box = gantt_.stages()[ref->stage].boxes[ref->box];
  const double length = box.finish - box.start;
  std::vector<TipLine> lines = {
      {u"start"_s, time_text(Seconds(box.start))},
      {u"time"_s, u"%1, %2 of the step"_s.arg(time_text(Seconds(length)),
                                              share_text(length / gantt_.makespan()))}};
  if (gantt_.chunks() > 1) lines.push_back({u"chunk"_s, QString::number(box.chunk)});
  return tool_tip(u"stage %1: %2 of microbatch %3"_s.arg(ref->stage)
                      .arg(to_qstring(title_of(box.phase)))
                      .arg(box.microbatch),
                  source_of(gantt_), lines);
}

void ScheduleCanvas::follow_moment() {
  if (!scene_.moment || scene_.window.shows_all()) return;
  AxisWindow window = scene_.window;
  const bool is_behind = *scene_.moment < window.from;
  if (!is_behind && *scene_.moment <= window.from + kMostAhead * window.length()) return;
  const double place = is_behind ? kLeastAhead : kMostAhead;
  window.pan(*scene_.moment - window.from - place * window.length());
  show_part(window, scene_.rows, false);
}

void ScheduleCanvas::scrub(double seconds) {
  set_moment(seconds);
  if (scene_.moment) Q_EMIT moment_changed(*scene_.moment);
}

void ScheduleCanvas::step_to(double seconds) {
  scrub(seconds);
  follow_moment();
}

void ScheduleCanvas::paint(QPainter& painter) {
  SchedulePainter(painter, gantt_, scene_, colours(), room()).paint();
}

void ScheduleCanvas::click(const QPointF& position) {
  const ScheduleGeometry places = geometry();
  if (places.overview.contains(position)) return look_at(places.overview, position.x());
  if (places.axis.contains(position)) return scrub(time_at(position.x()));
  NavigableView::click(position);
  // A second click on a slot shows its time in the timeline again.
  if (const auto& box = scene_.selected)
    Q_EMIT slot_selected(static_cast<int>(box->stage), gantt_.stages()[box->stage].boxes[box->box]);
}

void ScheduleCanvas::drag_to(const QPointF& position) {
  const QRectF overview = geometry().overview;
  if (overview.contains(press_position())) return look_at(overview, position.x());
  if (press_position().x() >= plot().left()) scrub(time_at(position.x()));
}

QPointF ScheduleCanvas::zoom_centre() const {
  if (!scene_.moment) return NavigableView::zoom_centre();
  const QRectF area = plot();
  return {area.left() + scene_.window.pixel_of(*scene_.moment, area.width()), area.center().y()};
}

}  // namespace shardwright::gui
