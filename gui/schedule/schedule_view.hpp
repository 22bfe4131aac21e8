// The pipeline schedule with the controls of its replay.
#pragma once

#include <QElapsedTimer>
#include <QTimer>

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/timeline/timeline.hpp"
#include "gui/schedule/schedule_canvas.hpp"
#include "gui/views/view.hpp"
#include "sim/step/step_result.hpp"

class QLabel;
class QSlider;
class QToolButton;

namespace shardwright::gui {

class EmptyState;

class ScheduleView : public View {
  Q_OBJECT

 public:
  explicit ScheduleView(QWidget* parent = nullptr);

  // Shows the slots of the timeline of the step with this result. If the timeline lacks some, the
  // view shows equal durations and says so. Of replicas on several pools it shows those on the pool
  // that computes longest.
  void set_plan(const Plan& plan, const ModelSpec& model, const Timeline* timeline = nullptr,
                const sim::StepResult* result = nullptr);
  void set_gantt(ScheduleGantt gantt);
  // `hint` says why there is nothing, as rich text; without one the view says how to get something.
  void clear(const QString& hint = {});

  ScheduleCanvas& canvas() const { return *canvas_; }
  // The number in the plan of the first stage that is shown.
  std::int64_t first_stage() const { return first_stage_; }
  bool playing() const { return ticks_.isActive(); }

  std::vector<ReportPart> report() const override {
    if (canvas_->gantt().empty()) return {};
    return {{{}, {}, canvas_, {}}};
  }
  TextTable table() const override { return schedule_table(canvas_->gantt()); }

  void play();
  void pause();
  void set_moment(double seconds);

 Q_SIGNALS:
  void moment_changed(double seconds);

 private:
  void create_controls();
  void connect_parts();
  void toggle();
  void tick();
  void show_moment();

  std::int64_t first_stage_ = 0;
  ScheduleCanvas* canvas_;
  EmptyState* empty_ = nullptr;
  QWidget* controls_ = nullptr;
  QToolButton* play_ = nullptr;
  QSlider* slider_ = nullptr;
  QLabel *moment_label_ = nullptr, *note_ = nullptr;
  QTimer ticks_;
  QElapsedTimer since_tick_;
};

}  // namespace shardwright::gui
