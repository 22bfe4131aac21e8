#include "gui/views/sweep_view.hpp"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLineEdit>
#include <QSettings>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "gui/models/freed_memory.hpp"
#include "gui/models/text.hpp"
#include "gui/views/empty_state.hpp"
#include "gui/views/layouts.hpp"
#include "gui/views/sweep_chart.hpp"
#include "gui/views/widgets.hpp"
#include "planner/wording.hpp"

namespace shardwright::gui {
namespace {

using planner::Sweep;
using planner::SweepAxis;
using planner::SweepPlan;
using planner::SweepPoint;

// The least height of the chart in heights of its letters.
constexpr int kLeastChartLines = 12;

QString range_key(SweepAxis axis) {
  return u"sweeps/range "_s + to_qstring(name_of(axis));
}

}  // namespace

SweepView::SweepView(Selection* selection, QWidget* parent)
    : View(parent),
      selection_(selection),
      job_(
          this,
          [this](const auto& sweep) {
            take(*sweep);
            call_ready();
          },
          [this](const QString& error) {
            end();
            if (sweep_.points.empty()) empty_->show_hint(error.toHtmlEscaped());
            Q_EMIT problem(error);
            call_ready();
          }) {
  chart_ = named<SweepChart>(u"sweep_chart"_s);
  empty_ = new EmptyState(chart_);
  reason_ = wrapped_label(u"knee_reason"_s);
  follow_letters(*chart_, [this] {
    chart_->setMinimumHeight(kLeastChartLines * chart_->fontMetrics().height());
  });
  // The chart gives way to the sentence below it before the view scrolls.
  chart_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Ignored);
  QVBoxLayout* layout = scrolled_column(*this);
  layout->setContentsMargins(6, 6, 6, 6);
  layout->addWidget(create_controls());
  layout->addWidget(empty_, 1);
  layout->addWidget(reason_);
  connect(chart_, &SweepChart::point_clicked, this, &SweepView::open_point);
  connect(chart_, &Chart::restyled, this, &SweepView::rebuild);
  connect(selection_, &Selection::chosen_changed, this, &SweepView::follow_selection);
  show_nothing();
}

void SweepView::open_point(int point) {
  if (planner::is_bandwidth(sweep_.axis)) return;
  opened_ = sweep_.points[static_cast<std::size_t>(point) % sweep_.points.size()];
  Q_EMIT point_wanted(sweep_.axis, *opened_);
}

// True if the plans, of which there may be none, are those of the point that was clicked on, and no
// other plan was chosen by hand among them.
bool SweepView::shows_opened_point() const {
  const PlanSetPointer& set = selection_->set();
  if (!opened_ || !swept_ || !set) return false;
  const auto& chosen = selection_->chosen();
  const bool is_opened =
      !set->complete || !chosen || *chosen == 0 ||
      (opened_->candidate && set->plans[*chosen].plan == opened_->candidate->plan);
  const Asked expected = swept_->at(sweep_.axis, static_cast<std::int64_t>(opened_->value));
  return is_opened && set->request.model == expected.scenario.model &&
         set->request.stack == expected.scenario.stack && asked_of(expected.scenario) == expected;
}

// A sweep stays while a search goes on, which names the same plan again and again, and while the
// plans of one of its points are shown.
void SweepView::follow_selection() {
  if (shows_opened_point()) return rebuild();
  const bool tries_again = stopped_at_ && selection_->scenario() != stopped_at_;
  if (swept_ && asked() == swept_ && !tries_again) return;
  outdated_ = true;
  look_again();
  call_ready();
}

void SweepView::look_again() {
  if (!outdated_) return;
  if (is_wanted()) return begin();
  job_.cancel();
  forget_points();
  end();
}

std::optional<Scenario> SweepView::scenario() const {
  auto scenario = selection_->scenario();
  if (scenario && plan() == SweepPlan::Best) scenario->cluster = selection_->set()->request.cluster;
  return scenario;
}

std::optional<SweepView::Asked> SweepView::asked() const {
  auto scenario = this->scenario();
  if (!scenario) return std::nullopt;
  if (axis() == SweepAxis::Gpus) scenario->plan = {};
  return asked_of(*std::move(scenario));
}

SweepView::Asked SweepView::asked_of(Scenario scenario) const {
  const planner::PlanRequest& request = selection_->set()->request;
  return Asked{std::move(scenario), request.gpus,         request.global_batch, request.seq_len,
               request.precision,   request.lora,         request.constraints,  request.objective,
               request.max_memory,  request.memory_share, request.limits,       request.cluster};
}

void SweepView::show_nothing() {
  job_.cancel();
  swept_.reset();
  forget_points();
  end();
  reason_->clear();
  empty_->show_hint(
      tr("Choose a plan in <b>Plans</b> to see how it fares on other machines and "
         "with other batches."));
}

// Drops the points, because those of an earlier plan would pass for the points of the present one.
void SweepView::forget_points() {
  sweep_ = {};
  stopped_ = false;
  stopped_at_.reset();
  rebuild();
}

QWidget* SweepView::create_controls() {
  axis_ = named<QComboBox>(u"sweep_axis"_s);
  for (const SweepAxis axis : enumerators<SweepAxis>()) axis_->addItem(title_of(axis));
  plan_ = named<QComboBox>(u"sweep_plan"_s);
  plan_->addItem(tr("the best plan of each point"));
  plan_->addItem(tr("the chosen plan"));
  plan_->setCurrentIndex(static_cast<int>(SweepPlan::Chosen));
  figure_ = named<QComboBox>(u"sweep_figure"_s);
  for (const SweepFigure figure : enumerators<SweepFigure>())
    figure_->addItem(title_of(figure), title_of(figure));
  figure_->setCurrentIndex(static_cast<int>(SweepFigure::TokensPerSecondPerGpu));
  for (QComboBox* box : {axis_, plan_, figure_}) leave_wheel_to_scrolling(*box);
  second_ = named<QComboBox>(u"sweep_second"_s);
  second_->addItem(tr("nothing else"), tr("nothing else"));
  for (const SweepFigure figure : enumerators<SweepFigure>())
    second_->addItem(title_of(figure), title_of(figure));
  leave_wheel_to_scrolling(*second_);
  progress_ = new ShareBar;
  stop_ = tool_button(u"stop_sweep"_s, tr("Stop"),
                      tr("Stops the sweep and keeps its points as they are."));
  end();
  auto* controls = new QWidget;
  auto* line = new FlowLayout(controls);
  line->setContentsMargins(0, 0, 0, 0);
  // A word stays with its box if the line is broken.
  line->addWidget(figure_);
  line->addWidget(row_of({new QLabel(tr("and")), second_}));
  line->addWidget(row_of({new QLabel(tr("against")), axis_}));
  line->addWidget(row_of({new QLabel(tr("of")), plan_}));
  line->addWidget(create_range());
  line->addWidget(progress_);
  line->addWidget(stop_);
  connect(stop_, &QToolButton::clicked, this, &SweepView::stop);
  connect(axis_, &QComboBox::currentIndexChanged, this, &SweepView::sweep_anew);
  connect(plan_, &QComboBox::currentIndexChanged, this, &SweepView::sweep_anew);
  connect(figure_, &QComboBox::currentIndexChanged, this, &SweepView::rebuild);
  connect(second_, &QComboBox::currentIndexChanged, this, &SweepView::rebuild);
  update_plan_choice();
  return controls;
}

QWidget* SweepView::create_range() {
  const auto end = [&](const QString& id, const QString& tip) {
    auto* box = named<QDoubleSpinBox>(id);
    box->setKeyboardTracking(false);
    box->setToolTip(tip);
    separate_thousands(*box);
    leave_wheel_to_scrolling(*box);
    watch_typing(*box);
    connect(box, &QDoubleSpinBox::valueChanged, this, &SweepView::take_range);
    return box;
  };
  from_ = end(u"sweep_from"_s, tr("The first point, in the unit of the axis"));
  to_ = end(u"sweep_to"_s, tr("The last point, in the unit of the axis"));
  points_ = named<QSpinBox>(u"sweep_points"_s);
  points_->setRange(static_cast<int>(kSweepPoints.least), static_cast<int>(kSweepPoints.most));
  points_->setKeyboardTracking(false);
  points_->setSuffix(tr(" points"));
  points_->setToolTip(
      tr("Each is as many times as large as the one before; several that come to the same possible "
         "value are one"));
  leave_wheel_to_scrolling(*points_);
  watch_typing(*points_);
  connect(points_, &QSpinBox::valueChanged, this, &SweepView::take_range);
  usual_range_ = tool_button(u"usual_range"_s, tr("Usual range"),
                             tr("Sweeps the points around the chosen plan again"));
  connect(usual_range_, &QToolButton::clicked, this, [this] {
    ranges_[axis()].reset();
    sweep_anew();
  });
  return row_of({new QLabel(tr("from")), from_, new QLabel(tr("to")), to_, points_, usual_range_});
}

// Shows the range once more where a number was typed and left as it was, because the range may have
// changed meanwhile.
void SweepView::watch_typing(QAbstractSpinBox& box) {
  connect(box.findChild<QLineEdit*>(), &QLineEdit::textEdited, this,
          [this, &box] { typed_into_ = &box; });
  connect(&box, &QAbstractSpinBox::editingFinished, this, [this] {
    if (std::exchange(typed_into_, nullptr) != nullptr) show_range();
  });
}

void SweepView::show_range() {
  const auto scenario = this->scenario();
  usual_range_->setEnabled(ranges_[axis()].has_value());
  if (!scenario) return;
  const auto usual = planner::usual_values(axis(), selection_->set()->request, *scenario);
  if (usual.empty()) return;
  const SweepRange range = ranges_[axis()].value_or(SweepRange{axis_value(axis(), usual.front()),
                                                               axis_value(axis(), usual.back()),
                                                               static_cast<int>(usual.size())});
  const bool is_bandwidth = planner::is_bandwidth(axis());
  const SweepRange widest = widest_range(axis());
  for (const auto& [box, value] : {std::pair(from_, range.from), {to_, range.to}}) {
    if (box == typed_into_) continue;
    const QSignalBlocker quiet(box);
    box->setDecimals(is_bandwidth ? 1 : 0);
    box->setRange(widest.from, widest.to);
    box->setValue(value);
  }
  if (points_ == typed_into_) return;
  const QSignalBlocker quiet(points_);
  points_->setValue(range.points);
}

void SweepView::take_range() {
  typed_into_ = nullptr;
  ranges_[axis()] = SweepRange{std::min(from_->value(), to_->value()),
                               std::max(from_->value(), to_->value()), points_->value()};
  sweep_anew();
}

// Returns the points that the user has set; none stands for the usual ones.
std::vector<double> SweepView::values() const {
  const auto& range = ranges_[axis()];
  const auto scenario = this->scenario();
  if (!range || !scenario) return {};
  return swept_values(axis(), *range, scenario->cluster.node.accelerators,
                      planner::batch_unit(scenario->plan));
}

void SweepView::set_plan(SweepPlan plan) {
  plan_->setCurrentIndex(static_cast<int>(plan));
}

SweepAxis SweepView::axis() const {
  return static_cast<SweepAxis>(axis_->currentIndex());
}

SweepPlan SweepView::plan() const {
  return planner::possible_plan(axis(), static_cast<SweepPlan>(plan_->currentIndex()));
}

// The box says that an axis allows only the best plans, and keeps the user's choice for other axes.
void SweepView::update_plan_choice() {
  const bool free = planner::possible_plan(axis(), SweepPlan::Chosen) == SweepPlan::Chosen;
  plan_->setEnabled(free);
  const auto wanted = static_cast<SweepPlan>(plan_->currentIndex());
  const QSignalBlocker quiet(plan_);
  if (!free) {
    if (plan_wanted_ == std::nullopt) plan_wanted_ = wanted;
    set_plan(SweepPlan::Best);
  } else if (plan_wanted_) {
    set_plan(*std::exchange(plan_wanted_, std::nullopt));
  }
}

void SweepView::name_accelerators() {
  for (const SweepAxis each : enumerators<SweepAxis>())
    axis_->setItemText(static_cast<int>(each), title_of(each, accelerator()));
  for (const SweepFigure each : enumerators<SweepFigure>()) {
    const int index = static_cast<int>(each);
    figure_->setItemText(index, title_of(each, accelerator()));
    second_->setItemText(index + 1, title_of(each, accelerator()));
  }
}

void SweepView::sweep_anew() {
  update_plan_choice();
  outdated_ = true;
  look_again();
}

SweepFigure SweepView::figure() const {
  return static_cast<SweepFigure>(figure_->currentIndex());
}

std::optional<SweepFigure> SweepView::second_figure() const {
  if (second_->currentIndex() == 0) return std::nullopt;
  return static_cast<SweepFigure>(second_->currentIndex() - 1);
}

void SweepView::begin() {
  const auto scenario = this->scenario();
  if (!scenario) return show_nothing();
  outdated_ = false;
  opened_.reset();
  swept_ = asked();
  name_accelerators();
  show_range();
  const SweepAxis axis = this->axis();
  const SweepPlan plan = this->plan();
  forget_points();
  empty_->show_hint(tr("Sweeping …"));
  progress_->begin();
  stop_->show();
  reason_->setText(gui::tip_of(axis, plan, accelerator()));
  planner::SweepWatch watch;
  watch.progress = progress_->reporter();
  planner::SweepRequest request{axis, plan, values(), selection_->set()->request, *scenario};
  job_.start([this, watch, request](const std::stop_token& stop) mutable {
    request.request.stop = stop;
    watch.found = [this, stop](const Sweep& sweep) {
      // Queued: another sweep may have been asked for before it arrives.
      const auto take_current = [this, stop, sweep] {
        if (!stop.stop_requested()) take(sweep);
      };
      QMetaObject::invokeMethod(this, take_current, Qt::QueuedConnection);
    };
    return planner::run_sweep(request, watch);
  });
}

void SweepView::stop() {
  job_.cancel();
  stopped_ = true;
  end();
  if (sweep_.points.empty()) {
    stopped_at_ = selection_->scenario();
    empty_->show_hint(
        tr("Stopped before there was a point. Choose another plan or axis to sweep again."));
  } else {
    show_knee();
  }
  call_ready();
}

void SweepView::end() {
  return_freed_memory();
  progress_->hide();
  stop_->hide();
}

void SweepView::take(const Sweep& sweep) {
  sweep_ = sweep;
  if (sweep_.lacks_link) return show_obstacle();
  const bool any = std::any_of(sweep_.points.begin(), sweep_.points.end(),
                               [](const SweepPoint& point) { return point.candidate.has_value(); });
  if (any) {
    empty_->show_content();
  } else {
    empty_->show_hint(sweep_.is_final() ? tr("No plan runs at any of these points.")
                                        : tr("No plan found yet: the whole space is searched."));
  }
  rebuild();
  if (!sweep_.is_final()) return;
  end();
  Q_EMIT settled();
}

void SweepView::show_obstacle() {
  empty_->show_hint(to_qstring(planner::lacking_link_text(sweep_.axis, swept_->scenario.cluster))
                        .toHtmlEscaped());
  reason_->clear();
  rebuild();
  end();
  Q_EMIT settled();
}

void SweepView::show_knee() {
  const QString knee = sweep_.is_final()
                           ? to_qstring(planner::knee_text(sweep_, swept_->scenario.cluster))
                           : preliminary_text(sweep_, stopped_);
  QString text = knee + u' ' + gui::tip_of(sweep_.axis, sweep_.plan, accelerator());
  if (sweep_.chosen_batch) {
    text += tr(" All train %1, the throughput knee on %2; Plans may use another batch.")
                .arg(counted_text(*sweep_.chosen_batch, "sequence"),
                     counted_text(static_cast<std::int64_t>(sweep_.points.back().value),
                                  accelerator()));
  }
  if (!has_interval(figure()))
    text += tr(" This figure has no prediction interval: only step times have one.");
  reason_->setText(with_whole_quantities(text));
}

void SweepView::rebuild() {
  if (sweep_.points.empty()) return chart_->show_nothing();
  chart_->show_figures(
      {sweep_, swept_->scenario, figure(), second_figure(),
       planner::own_value(sweep_.axis, selection_->set()->request, swept_->scenario.cluster)});
  show_knee();
}

TextTable SweepView::table() const {
  TextTable table;
  if (sweep_.points.empty()) return table;
  table.header = {
      axis_->currentText(), figure_->currentText(),  tr("Low"),        tr("High"), tr("Fits"),
      tr("Plan"),           tr("Batch (sequences)"), tr("Preliminary")};
  const auto second = second_figure();
  if (second) table.header.append(second_->currentText());
  for (const SweepPoint& point : sweep_.points) {
    QStringList row = {QString::number(axis_value(sweep_.axis, point.value), 'g', 9)};
    if (point.candidate) {
      const SweepValue value = value_of(figure(), point, swept_->scenario);
      for (const double each : {value.value, value.low, value.high})
        row.append(QString::number(each, 'g', 9));
      row +=
          {point.fits ? tr("yes")
                      : to_qstring(planner::obstacle_text(point, swept_->scenario.cluster)),
           plan_text(point.candidate->plan), QString::number(point.candidate->plan.global_batch)};
    } else {
      row += {QString(), QString(),
              QString(), to_qstring(planner::obstacle_text(point, swept_->scenario.cluster)),
              QString(), QString()};
    }
    row.append(point.preliminary ? tr("yes") : tr("no"));
    if (second)
      row.append(point.candidate
                     ? QString::number(value_of(*second, point, swept_->scenario).value, 'g', 9)
                     : QString());
    table.rows.push_back(row);
  }
  return table;
}

// A figure is kept by its title, which stays when figures are added, and on other accelerators.
void SweepView::save(QSettings& settings) const {
  settings.setValue(u"sweeps/axis"_s, to_qstring(name_of(axis())));
  for (const QComboBox* box : {figure_, second_})
    settings.setValue(u"sweeps/"_s + box->objectName(), box->currentData());
  const auto plan = plan_wanted_.value_or(static_cast<SweepPlan>(plan_->currentIndex()));
  settings.setValue(u"sweeps/of_best_plans"_s, plan == SweepPlan::Best);
  for (const SweepAxis axis : enumerators<SweepAxis>()) {
    const std::optional<SweepRange>& range = ranges_[axis];
    save_list(settings, range_key(axis), range ? texts_of(*range) : QStringList());
  }
}

void SweepView::restore(const QSettings& settings) {
  for (const SweepAxis each : enumerators<SweepAxis>())
    ranges_[each] = read_range(each, settings.value(range_key(each)).toStringList());
  for (QComboBox* box : {figure_, second_}) {
    const int index = box->findData(settings.value(u"sweeps/"_s + box->objectName()).toString());
    if (index >= 0) box->setCurrentIndex(index);
  }
  const QString axis = settings.value(u"sweeps/axis"_s).toString();
  for (const SweepAxis each : enumerators<SweepAxis>())
    if (axis == to_qstring(name_of(each))) axis_->setCurrentIndex(static_cast<int>(each));
  if (!settings.value(u"sweeps/of_best_plans"_s).toBool()) return;
  if (plan_wanted_) plan_wanted_ = SweepPlan::Best;
  set_plan(SweepPlan::Best);
}

std::vector<ReportPart> SweepView::report() const {
  if (sweep_.points.empty()) return {};
  const QString title = tr("%1 against %2").arg(figure_->currentText(), axis_->currentText());
  return {{title, reason_->text(), chart_, {}}};
}

}  // namespace shardwright::gui
