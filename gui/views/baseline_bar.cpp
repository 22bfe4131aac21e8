#include "gui/views/baseline_bar.hpp"

#include <QEvent>
#include <QLabel>
#include <QToolButton>
#include <QVBoxLayout>
#include <cmath>

#include "gui/models/plan_figures.hpp"
#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"
#include "gui/style/palette.hpp"
#include "gui/views/layouts.hpp"
#include "gui/views/widgets.hpp"

namespace shardwright::gui {
namespace {

// Changes that the table's own digits would not show have no colour.
constexpr double kLeastChange = 5e-4;

// "Step 15.1 s (−6.8 %)", in the colour of a gain or a loss if it is `judged`. Empty where one of
// them has no value, as the cost of a machine without a price.
QString difference_text(const PlanFigure& figure, double before, double after,
                        const QString& written, const Colours& colours, bool judged) {
  if (before == 0.0 || after == 0.0) return {};
  const double share = after / before - 1.0;
  const QString text = u"%1 <b>%2</b>%3 "_s.arg(
      figure.title, written, figure.unit.isEmpty() ? QString() : u' ' + figure.unit);
  if (std::abs(share) < kLeastChange) return text + BaselineBar::tr("(same)");
  const QString change = figure.unit == u"%"_s
                             ? BaselineBar::tr("%1%2 points")
                                   .arg(after > before ? u"+"_s : u"−"_s,
                                        fixed_text(std::abs(after - before), figure.decimals))
                             : signed_percent_text(share);
  if (!judged) return text + u"(%1)"_s.arg(change);
  const bool better = (share < 0.0) == figure.lower_is_better;
  return text + u"<span style=\"color:%1\">(%2)</span>"_s.arg(
                    (better ? colours.good : colours.bad).name(), change);
}

// Returns the figures that stand for speed, use, money and memory. Steps of other numbers of tokens
// cannot be compared by their time.
QStringList compared_figures(const planner::PlanCandidate& before,
                             const planner::PlanCandidate& after) {
  QStringList ids = {u"step"_s, u"mfu"_s, u"cost"_s, u"memory"_s};
  if (before.tokens() != after.tokens()) ids.prepend(u"rate"_s);
  return ids;
}

}  // namespace

BaselineBar::BaselineBar(Selection* selection, QWidget* parent)
    : QWidget(parent),
      selection_(selection),
      text_(wrapped_label(u"baseline_text"_s)),
      return_(tool_button(u"return_to_baseline"_s, tr("Back to the baseline"),
                          tr("Sets all fields of Scenario to those of the baseline and chooses its "
                             "plan"))) {
  text_->setTextFormat(Qt::RichText);
  QToolButton* unpin = tool_button(u"unpin"_s, tr("Unpin"), tr("Forgets the baseline"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(row_of({text_, return_, unpin}, text_));
  connect(return_, &QToolButton::clicked, this, &BaselineBar::return_wanted);
  connect(unpin, &QToolButton::clicked, selection_, &Selection::unpin);
  connect(selection_, &Selection::baseline_changed, this, &BaselineBar::show_differences);
  connect(selection_, &Selection::chosen_changed, this, &BaselineBar::show_differences);
  show_differences();
}

void BaselineBar::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) show_differences();
}

void BaselineBar::show_differences() {
  const auto& baseline = selection_->baseline();
  setVisible(baseline.has_value());
  if (!baseline) return;
  const PlanSet& before = *baseline->set;
  const planner::PlanCandidate& pinned = before.plans[baseline->plan];
  text_->setToolTip(tr("The baseline: %1, %2 on %3, %4 a step")
                        .arg(plan_text(pinned.plan), to_qstring(before.request.model.name),
                             to_qstring(before.request.cluster.name),
                             time_text(pinned.result.step)));
  const auto chosen = selection_->chosen();
  const bool is_baseline = chosen && selection_->scenario() == before.scenario(baseline->plan);
  return_->setEnabled(!is_baseline);
  if (!chosen) return text_->setText(tr("A baseline is pinned; no plan is chosen."));
  if (is_baseline)
    return text_->setText(
        tr("The chosen plan is the baseline. Change the scenario or choose another plan to see "
           "what that brings."));
  const PlanSet& after = *selection_->set();
  const bool same_work = pinned.tokens() == after.plans[*chosen].tokens();
  QStringList parts;
  for (const QString& id : compared_figures(pinned, after.plans[*chosen])) {
    const PlanFigure& figure = plan_figure(figure_index(id));
    const QString part = difference_text(figure, figure.value(before, baseline->plan),
                                         figure.value(after, *chosen), figure.text(after, *chosen),
                                         colours_for(palette()), same_work || id != u"step"_s);
    if (!part.isEmpty()) parts.append(part);
  }
  text_->setText(
      tr("Against the baseline: %1")
          .arg(with_accelerator(parts.join(u" · "_s), accelerator_word(selection_->set()))));
}

}  // namespace shardwright::gui
