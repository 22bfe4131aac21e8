#include "gui/window/docks.hpp"

#include <QApplication>
#include <QChildEvent>
#include <QDockWidget>
#include <QEvent>
#include <QLayout>
#include <QMainWindow>
#include <QMenu>
#include <QScreen>
#include <QSettings>
#include <QStyle>
#include <QTabBar>
#include <algorithm>
#include <functional>
#include <utility>

#include "gui/models/text.hpp"
#include "gui/views/view.hpp"

namespace shardwright::gui {
namespace {

// The width of the first dock in pixels, and the second one's thousandths of the height.
constexpr int kFirstWidth = 320, kUpperPermille = 445;
// The lines of letters that the lower views get in a low window, because Why is cut in fewer, and
// the share of the upper one that remains.
constexpr int kLinesOfLowerViews = 30, kLeastUpperPermille = 350;
// The height of a window in lines of letters that has room for views above each other.
constexpr int kLinesOfTwoViews = 40;

// True if a geometry begins as another one does, with Qt's magic number and version, and is as
// long. Qt also takes one that ends early, and refuses that of a screen of quite another width.
bool has_form_of(const QByteArray& geometry, const QByteArray& other) {
  constexpr qsizetype kBegin = 8;
  return geometry.size() == other.size() && geometry.startsWith(other.first(kBegin));
}

bool takes_tab(const QWidget& widget) {
  return (widget.focusPolicy() & Qt::TabFocus) != 0 && widget.focusProxy() == nullptr &&
         widget.isVisible() && widget.isEnabled();
}

// Lets tabs scroll, because Qt would shorten their titles to a letter or two. The window makes tab
// bars as docks come to share a place.
class TabBarWatcher : public QObject {
 public:
  using MenuOpener = std::function<void(QTabBar*, const QPoint&)>;

  TabBarWatcher(QObject* parent, MenuOpener open_menu)
      : QObject(parent), open_menu_(std::move(open_menu)) {}

  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() == QEvent::ChildPolished) {
      auto* tabs = qobject_cast<QTabBar*>(static_cast<QChildEvent*>(event)->child());
      if (tabs != nullptr) {
        tabs->setElideMode(Qt::ElideNone);
        tabs->setUsesScrollButtons(true);
        tabs->setContextMenuPolicy(Qt::CustomContextMenu);
        connect(tabs, &QTabBar::customContextMenuRequested, this,
                [this, tabs](const QPoint& at) { open_menu_(tabs, at); });
      }
    }
    return QObject::eventFilter(watched, event);
  }

 private:
  MenuOpener open_menu_;
};

}  // namespace

Docks::Docks(QMainWindow* window) : QObject(window), window_(window) {
  window_->setDockNestingEnabled(true);
  window_->installEventFilter(new TabBarWatcher(
      window_, [this](QTabBar* tabs, const QPoint& at) { open_tab_menu(tabs, at); }));
  title_pause_.setSingleShot(true);
  title_pause_.setInterval(0);
  connect(&title_pause_, &QTimer::timeout, this, &Docks::update_titles);
  // Docks that are squeezed scroll or cut their content; the window itself may be as small as this.
  window_->layout()->setSizeConstraint(QLayout::SetNoConstraint);
  window_->setMinimumSize(QSize(640, 480).boundedTo(largest_size()));
  connect(window_, &QMainWindow::tabifiedDockWidgetActivated, this, &Docks::bring_focus_to_front);
  connect(qApp, &QApplication::focusChanged, this, [this](QWidget*, const QWidget* now) {
    if (QDockWidget* dock = dock_of(now)) last_ = dock;
  });
}

void Docks::add(const QString& id, const QString& title, QWidget* view, Qt::DockWidgetArea area) {
  auto* dock = new QDockWidget(title, window_);
  dock->setObjectName(id);
  dock->setWidget(view);
  window_->addDockWidget(area, dock);
  // The last of them tells of tabs that come and go.
  connect(dock, &QDockWidget::dockLocationChanged, this, &Docks::update_titles_later);
  connect(dock, &QDockWidget::topLevelChanged, this, &Docks::update_titles_later);
  connect(dock, &QDockWidget::visibilityChanged, this, &Docks::update_titles_later);
  connect(
      dock, &QDockWidget::visibilityChanged, this,
      [this](bool visible) {
        if (visible) Q_EMIT came_to_front();
      },
      Qt::QueuedConnection);
  docks_.push_back(dock);
}

void Docks::arrange() {
  window_->setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
  for (std::size_t i = 3; i < docks_.size(); ++i) window_->tabifyDockWidget(docks_[2], docks_[i]);
  docks_[2]->raise();
  share_out({1440, std::min(850, window_->height())});
  last_ = docks_[1];
  docks_.front()->installEventFilter(this);
  update_titles();
}

void Docks::update_titles_later() {
  title_pause_.start();
}

void Docks::update_titles() {
  for (QDockWidget* dock : docks_) {
    const QList<QDockWidget*> beside = window_->tabifiedDockWidgets(dock);
    const bool has_tab =
        !dock->isFloating() && std::any_of(beside.begin(), beside.end(),
                                           [](const auto* each) { return !each->isHidden(); });
    QWidget* title = dock->titleBarWidget();
    if (has_tab == (title != nullptr)) continue;
    dock->setTitleBarWidget(has_tab ? new QWidget(dock) : nullptr);
    delete title;
  }
}

QDockWidget* Docks::dock_titled(const QString& title) const {
  const auto found = std::find_if(docks_.begin(), docks_.end(), [&](const QDockWidget* dock) {
    return dock->windowTitle() == title;
  });
  return found == docks_.end() ? nullptr : *found;
}

void Docks::open_tab_menu(QTabBar* tabs, const QPoint& at) {
  QDockWidget* dock = dock_titled(tabs->tabText(tabs->tabAt(at)));
  if (dock == nullptr) return;
  auto* menu = new QMenu(window_);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  menu->addAction(tr("Maximise"), this, [this, dock] {
    raise(dock->objectName());
    maximise(true);
  });
  menu->addAction(tr("Put into a window of its own"), dock, [dock] { dock->setFloating(true); });
  menu->addAction(tr("Close"), dock, &QDockWidget::close);
  menu->popup(tabs->mapToGlobal(at));
}

void Docks::maximise(bool on) {
  if (on == is_maximised()) return;
  QDockWidget* kept = current();
  if (on) return keep_alone(kept, window_->saveState());
  restore_state(*std::exchange(before_maximised_, std::nullopt));
  kept->raise();
  finish_maximising(kept);
}

void Docks::keep_alone(QDockWidget* kept, const QByteArray& before) {
  before_maximised_ = before;
  // The window of a floating view would be left empty.
  kept->setFloating(false);
  for (QDockWidget* dock : docks_) dock->setVisible(dock == kept);
  finish_maximising(kept);
}

void Docks::finish_maximising(QDockWidget* kept) {
  kept->widget()->setFocus();
  last_ = kept;
  update_titles();
  Q_EMIT maximised_changed(is_maximised());
}

// A state may be that of a window of another size: the width that the first dock gets from it is
// none that the user chose.
bool Docks::restore_state(const QByteArray& state) {
  const QSize held = std::exchange(laid_out_, QSize());
  const bool restored = window_->restoreState(state);
  window_->layout()->activate();
  laid_out_ = held;
  hold_first_width();
  return restored;
}

void Docks::share_out(const QSize& room) {
  const int lower = kLinesOfLowerViews * window_->fontMetrics().lineSpacing();
  const int upper = std::clamp(room.height() - lower, room.height() * kLeastUpperPermille / 1000,
                               room.height() * kUpperPermille / 1000);
  window_->resizeDocks({docks_[0], docks_[1]}, {kFirstWidth, room.width() - kFirstWidth},
                       Qt::Horizontal);
  window_->resizeDocks({docks_[1], docks_[2]}, {upper, room.height() - upper}, Qt::Vertical);
}

void Docks::keep_as_default() {
  default_layout_ = window_->saveState();
}

bool Docks::has_small_room() const {
  return window_->height() < kLinesOfTwoViews * window_->fontMetrics().lineSpacing();
}

void Docks::lay_out(Layout layout) {
  reset();
  if (layout == Layout::Columns) {
    window_->splitDockWidget(docks_[1], docks_[2], Qt::Horizontal);
    for (std::size_t i = 3; i < docks_.size(); ++i) window_->tabifyDockWidget(docks_[2], docks_[i]);
    const int rest = window_->width() - kFirstWidth;
    window_->resizeDocks({docks_[0], docks_[1], docks_[2]}, {kFirstWidth, rest / 2, rest / 2},
                         Qt::Horizontal);
  } else if (layout == Layout::OneAtATime) {
    for (std::size_t i = 2; i < docks_.size(); ++i) window_->tabifyDockWidget(docks_[1], docks_[i]);
  }
  docks_[layout == Layout::OneAtATime ? 1 : 2]->raise();
  update_titles_later();
}

void Docks::reset() {
  maximise(false);
  restore_state(default_layout_);
  for (QDockWidget* dock : docks_) dock->show();
  docks_[2]->raise();
  // Qt lays the docks out anew only when events are handled, and shares of before would be lost.
  window_->layout()->activate();
  share_out(window_->size());
}

void Docks::clear() {
  disconnect(qApp, nullptr, this, nullptr);
  disconnect(window_, nullptr, this, nullptr);
  while (!docks_.empty()) {  // The focus moves on to those that are left.
    QDockWidget* dock = docks_.back();
    docks_.pop_back();
    delete dock;
  }
}

QWidget* Docks::view(const QString& id) const {
  for (const QDockWidget* dock : docks_) {
    if (dock->objectName() == id) return dock->widget();
  }
  return nullptr;
}

void Docks::raise(const QString& id) {
  for (QDockWidget* dock : docks_) {
    if (dock->objectName() != id) continue;
    // The view that is asked for takes the place of one that has the whole window.
    for (QDockWidget* other : docks_)
      if (is_maximised() && other != dock) other->hide();
    dock->show();
    dock->raise();
    dock->widget()->setFocus();
    last_ = dock;
  }
}

QDockWidget* Docks::current() const {
  if (is_in_front(*last_)) return last_;
  const auto front = [](const QDockWidget* dock) { return is_in_front(*dock); };
  const QList<QDockWidget*> beside = window_->tabifiedDockWidgets(last_);
  const auto above = std::find_if(beside.begin(), beside.end(), front);
  if (above != beside.end()) return *above;
  const auto any = std::find_if(docks_.begin(), docks_.end(), front);
  return any == docks_.end() ? last_ : *any;
}

QDockWidget* Docks::dock_of(const QWidget* widget) const {
  const auto found = std::find_if(docks_.begin(), docks_.end(), [&](const QDockWidget* dock) {
    return widget != nullptr && dock->isAncestorOf(widget);
  });
  return found == docks_.end() ? nullptr : *found;
}

void Docks::bring_focus_to_front(QDockWidget* dock) {
  last_ = dock;
  QDockWidget* focused = dock_of(window_->focusWidget());
  if (focused != nullptr && window_->tabifiedDockWidgets(dock).contains(focused))
    dock->widget()->setFocus();
}

bool Docks::focus_next(bool forward) {
  const auto step = [forward](const QWidget* widget) {
    return forward ? widget->nextInFocusChain() : widget->previousInFocusChain();
  };
  const QWidget* from = window_->focusWidget() != nullptr ? window_->focusWidget() : window_;
  for (QWidget* widget = step(from); widget != from; widget = step(widget)) {
    const QDockWidget* dock = dock_of(widget);
    if (widget->window() != window_ || !takes_tab(*widget) || (dock && !is_in_front(*dock)))
      continue;
    widget->setFocus(forward ? Qt::TabFocusReason : Qt::BacktabFocusReason);
    return true;
  }
  return false;
}

void Docks::hold_first_width() {
  if (docks_.empty()) return;
  QDockWidget* first = docks_.front();
  const Qt::DockWidgetArea area = window_->dockWidgetArea(first);
  const bool is_beside = area == Qt::LeftDockWidgetArea || area == Qt::RightDockWidgetArea;
  if (!is_beside || first->isFloating() || first->isHidden()) {
    laid_out_ = window_->size();
    return;
  }
  const int width = first_width_ > 0 ? first_width_ : first->width();
  laid_out_ = QSize();  // The user does not choose the widths that follow.
  first->setMaximumWidth(std::max(width, first->minimumSizeHint().width()));
  window_->layout()->activate();
  first->setMaximumWidth(QWIDGETSIZE_MAX);
  window_->layout()->activate();
  first_width_ = width;
  laid_out_ = window_->size();
}

bool Docks::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize && window_->size() == laid_out_)
    first_width_ = docks_.front()->width();
  return QObject::eventFilter(watched, event);
}

void Docks::save(QSettings& settings) const {
  settings.setValue(u"window/geometry"_s, window_->saveGeometry());
  settings.setValue(u"window/layout"_s, before_maximised_.value_or(window_->saveState()));
  settings.setValue(u"window/maximised"_s, is_maximised() ? current()->objectName() : QString());
}

QStringList Docks::restore(const QSettings& settings) {
  QStringList damaged;
  const auto restore_value = [&](const char* key, auto put) {
    const QString name = to_qstring(key);
    if (settings.contains(name) && !put(settings.value(name).toByteArray())) damaged.append(name);
  };
  restore_value("window/geometry", [this](const QByteArray& state) {
    if (!has_form_of(state, window_->saveGeometry())) return false;
    window_->restoreGeometry(state);
    window_->resize(
        window_->size().boundedTo(largest_size()));  // It may come from a larger screen.
    return true;
  });
  restore_value("window/layout", [this](const QByteArray& state) {
    return window_->restoreState(state) || (window_->restoreState(default_layout_), false);
  });
  const QString maximised = settings.value(u"window/maximised"_s).toString();
  for (QDockWidget* dock : docks_)
    if (dock->objectName() == maximised) keep_alone(dock, window_->saveState());
  return damaged;
}

QSize Docks::largest_size() const {
  const QStyle* style = window_->style();
  const int edge = style->pixelMetric(QStyle::PM_MdiSubWindowFrameWidth);
  const int title = style->pixelMetric(QStyle::PM_TitleBarHeight);
  return window_->screen()->availableSize() - QSize(2 * edge, title + edge);
}

}  // namespace shardwright::gui
