#include "gui/schedule/schedule_view.hpp"

#include <QLabel>
#include <QSignalBlocker>
#include <QSlider>
#include <QToolButton>
#include <QVBoxLayout>
#include <cmath>

#include "core/spec/plan_text.hpp"
#include "core/spec/pools.hpp"
#include "gui/models/text.hpp"
#include "gui/schedule/schedule_gantt.hpp"
#include "gui/style/icons.hpp"
#include "gui/views/empty_state.hpp"
#include "gui/views/layouts.hpp"
#include "gui/views/widgets.hpp"

namespace shardwright::gui {
namespace {

// The time in which the replay crosses the part of the step in view, so that one that is zoomed
// into plays as slowly as a whole one.
constexpr double kReplaySeconds = 12.0;
constexpr int kFrameMs = 16;
constexpr int kSliderSteps = 10'000;

// The step on so many stages from `first` on, one of which is the bottleneck.
GanttStep step_of(const sim::StepResult& result, std::int64_t first, std::int64_t stages) {
  GanttStep step{result.step.value(), {}, static_cast<std::size_t>(result.bottleneck - first)};
  for (std::int64_t stage = first; stage < first + stages; ++stage)
    step.bubbles.push_back(result.stages[static_cast<std::size_t>(stage)].time.bubble.value());
  return step;
}

}  // namespace

ScheduleView::ScheduleView(QWidget* parent) : View(parent), canvas_(new ScheduleCanvas) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  create_controls();
  // The stack passes the focus on from within a page, but not from the page itself.
  empty_ = new EmptyState(column_of({canvas_}), this);
  layout->addWidget(empty_, 1);
  layout->addWidget(controls_);
  setFocusProxy(canvas_);
  ticks_.setInterval(kFrameMs);
  connect_parts();
  clear();
}

void ScheduleView::create_controls() {
  play_ = new QToolButton;
  play_->setIcon(icon_of(Icon::Run));
  play_->setToolTip(u"Play the step slowly (Space)"_s);
  play_->setAccessibleName(u"Play or pause"_s);
  slider_ = new QSlider(Qt::Horizontal);
  slider_->setRange(0, kSliderSteps);
  slider_->setAccessibleName(u"Moment of the replay"_s);
  moment_label_ = new QLabel;
  follow_letters(*moment_label_, [label = moment_label_] {
    label->setMinimumWidth(9 * label->fontMetrics().height());
  });
  note_ = new QLabel;
  controls_ = row_of({play_, slider_, moment_label_, note_}, slider_);
  controls_->layout()->setContentsMargins(8, 4, 8, 4);
}

void ScheduleView::connect_parts() {
  connect(play_, &QToolButton::clicked, this, &ScheduleView::toggle);
  connect(&ticks_, &QTimer::timeout, this, &ScheduleView::tick);
  connect(slider_, &QSlider::valueChanged, this, [this](int value) {
    pause();
    set_moment(canvas_->gantt().makespan() * value / kSliderSteps);
    canvas_->follow_moment();
  });
  connect(canvas_, &ScheduleCanvas::play_toggled, this, &ScheduleView::toggle);
  connect(canvas_, &ScheduleCanvas::moment_changed, this, [this](double seconds) {
    pause();
    show_moment();
    Q_EMIT moment_changed(seconds);
  });
  connect(canvas_, &ScheduleCanvas::replay_left, this, [this] {
    pause();
    show_moment();
  });
}

void ScheduleView::set_plan(const Plan& plan, const ModelSpec& model, const Timeline* timeline,
                            const sim::StepResult* result) {
  const std::int64_t part = result == nullptr ? 0 : result->bottleneck / plan.pp;
  const ScheduleShape shape = shape_of(plan_of_part(plan, static_cast<std::size_t>(part)));
  // One stage has no pipeline to show.
  if (plan.pp < 2 || why_not(plan.schedule, shape)) return clear();
  first_stage_ = part * plan.pp;
  std::optional<StageSlotTimes> times;
  if (timeline != nullptr && result != nullptr)
    times = stage_slots(*timeline, model, plan, static_cast<std::size_t>(part));
  if (times) {
    set_gantt(ScheduleGantt(plan.schedule, shape, *times, step_of(*result, first_stage_, plan.pp)));
    if (!plan.replica_pools.empty())
      note_->setText(u"Replicas on %1"_s.arg(to_qstring(
          part_pools_text(plan.replica_pools[static_cast<std::size_t>(part)], " then "))));
  } else {
    set_gantt(ScheduleGantt(plan.schedule, shape));
    note_->setText(u"Equal durations; messages take no time"_s);
  }
}

void ScheduleView::set_gantt(ScheduleGantt gantt) {
  pause();
  canvas_->set_gantt(std::move(gantt));
  note_->clear();
  controls_->setVisible(!canvas_->gantt().empty());
  if (!canvas_->gantt().empty()) empty_->show_content();
  show_moment();
}

void ScheduleView::clear(const QString& hint) {
  set_gantt({});
  empty_->show_hint(hint.isEmpty()
                        ? u"<b>No pipeline schedule</b><br>Choose a plan with more than one "
                          "pipeline stage to see when each stage runs each microbatch."_s
                        : hint);
}

void ScheduleView::play() {
  if (canvas_->gantt().empty() || playing()) return;
  // Without a moment the replay starts where the user looks.
  double from = canvas_->scene().moment.value_or(canvas_->scene().window.from);
  if (from >= canvas_->gantt().makespan()) from = 0.0;
  since_tick_.start();
  ticks_.start();
  play_->setIcon(icon_of(Icon::Pause));
  set_moment(from);
  canvas_->follow_moment();
}

void ScheduleView::pause() {
  ticks_.stop();
  play_->setIcon(icon_of(Icon::Run));
}

void ScheduleView::toggle() {
  if (playing()) {
    pause();
  } else {
    play();
  }
}

void ScheduleView::tick() {
  const double makespan = canvas_->gantt().makespan();
  const double pace = canvas_->scene().window.length() / (1000.0 * kReplaySeconds);
  const double moment =
      canvas_->scene().moment.value_or(0.0) + static_cast<double>(since_tick_.restart()) * pace;
  if (moment >= makespan) pause();
  set_moment(moment);
  canvas_->follow_moment();
}

void ScheduleView::set_moment(double seconds) {
  canvas_->set_moment(seconds);
  show_moment();
  if (canvas_->scene().moment) Q_EMIT moment_changed(*canvas_->scene().moment);
}

void ScheduleView::show_moment() {
  const double makespan = canvas_->gantt().makespan();
  const auto& moment = canvas_->scene().moment;
  const QSignalBlocker quiet(slider_);
  slider_->setValue(moment && makespan > 0.0
                        ? static_cast<int>(std::lround(*moment / makespan * kSliderSteps))
                        : 0);
  if (canvas_->gantt().empty()) return moment_label_->clear();
  moment_label_->setText(
      u"%1 of %2"_s.arg(time_text(Seconds(moment.value_or(0.0))), time_text(Seconds(makespan))));
}

}  // namespace shardwright::gui
