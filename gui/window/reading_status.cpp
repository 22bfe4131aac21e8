#include "gui/window/reading_status.hpp"

#include <QAction>
#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QToolButton>

#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

constexpr int kReadingSteps = 1000;
constexpr int kTickMs = 100;

}  // namespace

ReadingStatus::ReadingStatus(const ReadingProgress* progress, QAction* stop, QWidget* parent)
    : QWidget(parent),
      progress_(progress),
      stop_(stop),
      text_(new QLabel),
      bar_(new QProgressBar),
      button_(new QToolButton) {
  setObjectName(u"reading"_s);
  bar_->setObjectName(u"reading_bar"_s);
  bar_->setTextVisible(false);
  bar_->setFixedWidth(140);
  button_->setObjectName(u"stop_reading"_s);
  button_->setText(tr("Stop"));
  button_->setToolTip(tr("Stop the reading (%1): what is shown stays")
                          .arg(stop->shortcut().toString(QKeySequence::NativeText)));
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(text_);
  layout->addWidget(bar_);
  layout->addWidget(button_);
  hide();
  ticks_.setInterval(kTickMs);
  connect(&ticks_, &QTimer::timeout, this, &ReadingStatus::show_progress);
  connect(button_, &QToolButton::clicked, stop_, &QAction::trigger);
  connect(stop_, &QAction::changed, this, &ReadingStatus::follow);
}

QString ReadingStatus::text() const {
  return text_->text();
}

void ReadingStatus::follow() {
  if (stop_->isEnabled() == ticks_.isActive()) return;
  if (stop_->isEnabled()) return ticks_.start();
  ticks_.stop();
  hide();
}

// The time that remains is unknown once all bytes are read.
void ReadingStatus::show_progress() {
  const ReadingProgress::State state = progress_->state();
  if (state.doing.isEmpty()) return;
  const bool reads = state.bytes < state.total;
  const auto bytes = [](qint64 count) { return bytes_text(Bytes(static_cast<double>(count))); };
  text_->setText(reads ? tr("%1: %2 of %3").arg(state.doing, bytes(state.bytes), bytes(state.total))
                 : state.total > 0 ? tr("%1: %2 are read …").arg(state.doing, bytes(state.total))
                                   : tr("%1 …").arg(state.doing));
  bar_->setRange(0, reads ? kReadingSteps : 0);
  if (reads) bar_->setValue(static_cast<int>(kReadingSteps * state.bytes / state.total));
  show();
}

}  // namespace shardwright::gui
