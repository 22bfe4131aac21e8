#include "gui/window/progress_status.hpp"

#include <QAction>
#include <QHBoxLayout>
#include <QProgressBar>

#include "gui/models/text.hpp"
#include "gui/views/widgets.hpp"

namespace shardwright::gui {
namespace {

constexpr int kProgressSteps = 1000;
constexpr int kTickMs = 100;

}  // namespace

ProgressStatus::ProgressStatus(const QString& work, const QString& stop_tip)
    : text_(new ElidedLabel),
      bar_(named<QProgressBar>(work + u"_bar"_s)),
      stop_(tool_button(u"stop_"_s + work, tr("Stop"), stop_tip)) {
  setObjectName(work);
  bar_->setRange(0, kProgressSteps);
  bar_->setTextVisible(false);
  bar_->setFixedWidth(140);
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(text_, 1);
  layout->addWidget(bar_);
  layout->addWidget(stop_);
}

QString ProgressStatus::text() const {
  return text_->text();
}

SearchStatus::SearchStatus(PlanSearch* search)
    : ProgressStatus(u"search"_s, tr("Stop the search and keep what it has found")) {
  const auto show_parts = [this](bool searching) {
    bar_->setVisible(searching);
    stop_->setVisible(searching);
  };
  show_parts(false);
  connect(stop_, &QToolButton::clicked, search, &PlanSearch::stop);
  connect(search, &PlanSearch::started, this, [this, show_parts] {
    text_->show_text(tr("Searching …"));
    bar_->setValue(0);
    show_parts(true);
  });
  connect(search, &PlanSearch::progressed, this, &SearchStatus::show_progress);
  connect(search, &PlanSearch::finished, this, [this, show_parts] {
    text_->show_text({});
    show_parts(false);
  });
}

void SearchStatus::show_progress(double share, const QString& text) {
  text_->show_text(text);
  // Without a known end there is no bar, because one that has none looks full: nobody knows how
  // many of the plans that were checked the search will simulate.
  bar_->setVisible(share != PlanSearch::kUnknownShare && share < 1.0);
  bar_->setValue(static_cast<int>(share * kProgressSteps));
}

ReadingStatus::ReadingStatus(const ReadingProgress* progress, QAction* stop)
    : ProgressStatus(u"reading"_s, tr("Stop the reading (%1): what is shown stays")
                                       .arg(stop->shortcut().toString(QKeySequence::NativeText))),
      progress_(progress),
      action_(stop) {
  hide();
  ticks_.setInterval(kTickMs);
  connect(&ticks_, &QTimer::timeout, this, &ReadingStatus::show_progress);
  connect(stop_, &QToolButton::clicked, action_, &QAction::trigger);
  connect(action_, &QAction::changed, this, &ReadingStatus::follow);
}

void ReadingStatus::follow() {
  if (action_->isEnabled() == ticks_.isActive()) return;
  if (action_->isEnabled()) return ticks_.start();
  ticks_.stop();
  hide();
}

// The time that remains is unknown once all bytes are read.
void ReadingStatus::show_progress() {
  const ReadingProgress::State state = progress_->state();
  if (state.doing.isEmpty()) return;
  const bool reads = state.bytes < state.total;
  const auto bytes = [](qint64 count) { return bytes_text(Bytes(static_cast<double>(count))); };
  text_->show_text(reads
                       ? tr("%1: %2 of %3").arg(state.doing, bytes(state.bytes), bytes(state.total))
                   : state.total > 0 ? tr("%1: %2 are read …").arg(state.doing, bytes(state.total))
                                     : tr("%1 …").arg(state.doing));
  bar_->setRange(0, reads ? kProgressSteps : 0);
  if (reads) bar_->setValue(static_cast<int>(kProgressSteps * state.bytes / state.total));
  show();
}

}  // namespace shardwright::gui
