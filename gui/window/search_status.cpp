#include "gui/window/search_status.hpp"

#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QToolButton>

#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

constexpr int kSteps = 1000;

}  // namespace

SearchStatus::SearchStatus(PlanSearch* search, QWidget* parent)
    : QWidget(parent), text_(new QLabel), bar_(new QProgressBar), stop_(new QToolButton) {
  bar_->setRange(0, kSteps);
  bar_->setTextVisible(false);
  bar_->setFixedWidth(140);
  stop_->setObjectName(u"stop_search"_s);
  stop_->setText(tr("Stop"));
  stop_->setToolTip(tr("Stop the search and keep what it has found"));
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(text_, 1);
  layout->addWidget(bar_);
  layout->addWidget(stop_);
  bar_->hide();
  stop_->hide();
  connect(stop_, &QToolButton::clicked, search, &PlanSearch::stop);
  connect(search, &PlanSearch::started, this, [this] {
    text_->setText(tr("Searching …"));
    bar_->setValue(0);
    bar_->show();
    stop_->show();
  });
  connect(search, &PlanSearch::progressed, this, &SearchStatus::show_progress);
  connect(search, &PlanSearch::finished, this, [this] {
    text_->clear();
    bar_->hide();
    stop_->hide();
  });
}

void SearchStatus::show_progress(double share, qint64 checked, qint64 simulated,
                                 double best_step_s) {
  QString text =
      tr("%1 checked, %2 simulated").arg(counted_text(checked, "plan"), count_text(simulated));
  if (best_step_s > 0.0) text += tr(", best step %1").arg(time_text(Seconds(best_step_s)));
  text_->setText(text);
  bar_->setValue(static_cast<int>(share * kSteps));
}

}  // namespace shardwright::gui
