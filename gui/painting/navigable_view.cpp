#include "gui/painting/navigable_view.hpp"

#include <QFontInfo>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>
#include <utility>

namespace shardwright::gui {
namespace {

// QWheelEvent::angleDelta of one notch.
constexpr double kNotch = 120.0;
constexpr double kZoomPerNotch = 1.25;
constexpr double kZoomPerKey = 1.5;
// The share of the part in view that a notch or a key pans by.
constexpr double kPanShare = 0.15;
constexpr double kMostZoomOfMaps = 8.0;
constexpr double kRowPixelsPerNotch = 60.0;
// A click may move the mouse by so many pixels.
constexpr double kClickDistance = 4.0;
// Steps of the horizontal scroll bar for the whole axis.
constexpr int kBarSteps = 100'000;
constexpr std::size_t kMostEarlierParts = 100;

}  // namespace

NavigableArea::NavigableArea(const QString& accessible_name, Zoom zoom, QWidget* parent)
    : QAbstractScrollArea(parent), zoom_(zoom), colours_(colours_for(palette())) {
  setFocusPolicy(Qt::StrongFocus);
  setFrameShape(QFrame::NoFrame);
  setAccessibleName(accessible_name);
  viewport()->setMouseTracking(true);
  take_font();
  add_keys();
  if (zoom_ == Zoom::Horizontal) return;
  // A map is dragged: bars that come and go would lay it out anew.
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
}

// Whole pixels of letters, so that those of usual size are as sharp as others of the desktop.
void NavigableArea::take_font() {
  constexpr double kLetterUnits = 12.0;
  unit_ = std::max(1, QFontInfo(font()).pixelSize()) / kLetterUnits;
}

void NavigableArea::start_with(double limit) {
  earlier_.clear();
  window() = AxisWindow::whole(limit);
  hover(std::nullopt);
}

void NavigableArea::start_with(const QSizeF& map) {
  earlier_.clear();
  const QSizeF shown = plot().size().expandedTo({1.0, 1.0}), whole = map.expandedTo(shown);
  window() = {0.0, shown.width(), whole.width()};
  rows() = {0.0, shown.height(), whole.height()};
  update_scroll_bars();
}

void NavigableArea::set_rows_height(double height) {
  const double shown = std::max(1.0, plot().height());
  rows().limit = std::max(height, shown);
  rows().to = rows().from + shown;
  rows().pan(0.0);
  update_scroll_bars();
}

void NavigableArea::show_part(const AxisWindow& window, const AxisWindow& rows, bool remember) {
  if (window == this->window() && rows == this->rows()) return;
  if (remember && earlier_.size() < kMostEarlierParts)
    earlier_.push_back({this->window(), this->rows()});
  this->window() = window;
  this->rows() = rows;
  update_scroll_bars();
  part_changed();
  if (drag_ == Drag::None && viewport()->underMouse()) hover(last_);
}

void NavigableArea::show_window(double from, double to) {
  AxisWindow window = this->window();
  window.show(from, to);
  show_part(window, rows(), true);
}

void NavigableArea::fit() {
  AxisWindow window = this->window(), rows = this->rows();
  window.show(0.0, zoom_ == Zoom::Both ? plot().width() : window.limit);
  if (zoom_ == Zoom::Both) rows.show(0.0, plot().height());
  show_part(window, rows, true);
}

void NavigableArea::zoom_about(const QPointF& position, double factor) {
  const QRectF area = plot();
  if (area.isEmpty()) return;
  const QPointF place(std::clamp(position.x() - area.left(), 0.0, area.width()),
                      std::clamp(position.y() - area.top(), 0.0, area.height()));
  AxisWindow window = this->window(), rows = this->rows();
  if (zoom_ == Zoom::Both) {
    const double zoomed = area.width() / window.length();
    factor = std::clamp(factor, 1.0 / zoomed, kMostZoomOfMaps / zoomed);
    rows.zoom_about(rows.value_at(place.y(), area.height()), factor);
  }
  window.zoom_about(window.value_at(place.x(), area.width()), factor);
  show_part(window, rows, false);
}

void NavigableArea::pan(const QPointF& pixels) {
  const QRectF area = plot();
  if (area.isEmpty()) return;
  AxisWindow window = this->window(), rows = this->rows();
  window.pan(pixels.x() / area.width() * window.length());
  // Rows that are not zoomed stay on whole pixels, where their lines are sharp.
  rows.pan(zoom_ == Zoom::Both ? pixels.y() / area.height() * rows.length()
                               : std::round(pixels.y()));
  show_part(window, rows, false);
}

void NavigableArea::look_at(const QRectF& overview, double x) {
  AxisWindow window = this->window();
  window.pan((x - overview.left()) / overview.width() * window.limit - window.middle());
  show_part(window, rows(), false);
}

bool NavigableArea::event(QEvent* event) {
  // The frame of the focus is painted in the viewport.
  if (event->type() == QEvent::FocusIn || event->type() == QEvent::FocusOut) viewport()->update();
  return QAbstractScrollArea::event(event);
}

bool NavigableArea::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const QString text = is_empty() ? QString() : tool_tip_at(QPointF(help->pos()) / unit_);
    QToolTip::showText(help->globalPos(), text, viewport());
    return true;
  }
  if (event->type() == QEvent::Leave) hover(std::nullopt);
  return QAbstractScrollArea::viewportEvent(event);
}

void NavigableArea::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  painter.fillRect(viewport()->rect(), colours_.base);
  if (is_empty()) return;
  painter.save();
  painter.scale(unit_, unit_);
  paint(painter);
  painter.restore();
  if (!hasFocus()) return;
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(colours_.accent, 1.0));
  painter.drawRect(viewport()->rect().adjusted(0, 0, -1, -1));
}

void NavigableArea::resizeEvent(QResizeEvent*) {
  lay_out();
  part_changed();
}

void NavigableArea::update_scroll_bars() {
  hidden_height_ = static_cast<int>(std::ceil((rows().limit - rows().length()) * unit_));
  const bool was_setting = std::exchange(setting_bars_, true);
  verticalScrollBar()->setRange(0, static_cast<int>(std::ceil(rows().limit - rows().length())));
  verticalScrollBar()->setPageStep(static_cast<int>(rows().length()));
  verticalScrollBar()->setSingleStep(20);
  verticalScrollBar()->setValue(static_cast<int>(std::lround(rows().from)));
  const double share = window().length() / window().limit;
  horizontalScrollBar()->setRange(0, static_cast<int>(std::lround((1.0 - share) * kBarSteps)));
  horizontalScrollBar()->setPageStep(std::max(1, static_cast<int>(share * kBarSteps)));
  horizontalScrollBar()->setSingleStep(std::max(1, static_cast<int>(0.1 * share * kBarSteps)));
  horizontalScrollBar()->setValue(
      static_cast<int>(std::lround(window().from / window().limit * kBarSteps)));
  setting_bars_ = was_setting;
}

void NavigableArea::scrollContentsBy(int dx, int dy) {
  if (setting_bars_) return;
  AxisWindow window = this->window(), rows = this->rows();
  if (dx != 0) window.pan(horizontalScrollBar()->value() * window.limit / kBarSteps - window.from);
  if (dy != 0) rows.pan(verticalScrollBar()->value() - rows.from);
  show_part(window, rows, false);
}

void NavigableArea::wheelEvent(QWheelEvent* event) {
  if (is_empty()) return;
  last_ = place_of(*event);
  // Some platforms turn Shift + wheel into a horizontal wheel.
  const QPoint delta = event->angleDelta();
  const double notches = (delta.y() != 0 ? delta.y() : delta.x()) / kNotch;
  const bool sideways = event->modifiers().testFlag(Qt::ShiftModifier) || delta.y() == 0;
  const bool zooms =
      event->modifiers().testFlag(Qt::ControlModifier) || (!sideways && wheel_zooms_at(last_));
  if (zooms) {
    zoom_about(last_, std::pow(kZoomPerNotch, notches));
  } else if (sideways) {
    pan({-notches * kPanShare * plot().width(), 0.0});
  } else {
    pan({0.0, -notches * kRowPixelsPerNotch});
  }
  event->accept();
}

void NavigableArea::mousePressEvent(QMouseEvent* event) {
  pressed_ = last_ = place_of(*event);
  moved_ = false;
  left_button_ = event->button() == Qt::LeftButton;
  if (is_empty() || (!left_button_ && event->button() != Qt::MiddleButton)) return;
  const bool is_own = left_button_ && !event->modifiers().testFlag(Qt::ShiftModifier);
  drag_ = is_own && begin_drag(pressed_) ? Drag::Own : Drag::Pan;
}

void NavigableArea::mouseMoveEvent(QMouseEvent* event) {
  const QPointF position = place_of(*event), before = std::exchange(last_, position);
  moved_ = moved_ || (position - pressed_).manhattanLength() > kClickDistance;
  if (drag_ == Drag::None) return hover(position);
  if (drag_ == Drag::Own) {
    if (moved_) drag_to(position);
    return;
  }
  viewport()->setCursor(Qt::ClosedHandCursor);
  pan(before - position);
}

void NavigableArea::mouseReleaseEvent(QMouseEvent* event) {
  const Drag drag = drag_;
  end_mouse_drag();
  if (drag == Drag::Own && moved_) return end_drag(place_of(*event));
  if (drag != Drag::None && left_button_ && !moved_) click(place_of(*event));
}

void NavigableArea::end_mouse_drag() {
  drag_ = Drag::None;
  viewport()->unsetCursor();
}

// The second press of a double click that fits nothing is a press like any other.
void NavigableArea::mouseDoubleClickEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || is_empty()) return;
  if (!double_click_fits_at(place_of(*event))) return mousePressEvent(event);
  fit();
}

void NavigableArea::on_keys(std::initializer_list<QKeyCombination> keys,
                            const std::function<void()>& action) {
  for (const QKeyCombination key : keys) keys_[key.toCombined()] = action;
}

void NavigableArea::add_keys() {
  on_keys({Qt::Key_W, Qt::Key_Plus}, [this] { zoom_by_key(kZoomPerKey); });
  on_keys({Qt::Key_S, Qt::Key_Minus}, [this] { zoom_by_key(1.0 / kZoomPerKey); });
  on_keys({Qt::Key_A, Qt::SHIFT | Qt::Key_Left}, [this] { pan({-kPanShare * plot().width(), 0}); });
  on_keys({Qt::Key_D, Qt::SHIFT | Qt::Key_Right}, [this] { pan({kPanShare * plot().width(), 0}); });
  on_keys({Qt::SHIFT | Qt::Key_Up}, [this] { pan({0, -kPanShare * plot().height()}); });
  on_keys({Qt::SHIFT | Qt::Key_Down}, [this] { pan({0, kPanShare * plot().height()}); });
  on_keys({Qt::Key_Home}, [this] { fit(); });
  on_keys({Qt::Key_Backspace}, [this] { show_earlier_part(); });
  on_keys({Qt::Key_Escape}, [this] { clear_selection(); });
}

void NavigableArea::zoom_by_key(double factor) {
  zoom_about(viewport()->underMouse() ? last_ : zoom_centre(), factor);
}

void NavigableArea::show_earlier_part() {
  if (earlier_.empty()) return;
  const Part part = earlier_.back();
  earlier_.pop_back();
  show_part(part.window, zoom_ == Zoom::Both ? part.rows : rows(), false);
}

void NavigableArea::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape && drag_ == Drag::Own) {
    end_mouse_drag();
    return cancel_drag();
  }
  const Qt::KeyboardModifiers modifiers = event->modifiers() & ~Qt::KeypadModifier;
  auto action = keys_.find(QKeyCombination(modifiers, Qt::Key(event->key())).toCombined());
  if (action == keys_.end() && modifiers == Qt::ShiftModifier) action = keys_.find(event->key());
  if (action == keys_.end() || is_empty()) return QAbstractScrollArea::keyPressEvent(event);
  action->second();
}

void NavigableArea::changeEvent(QEvent* event) {
  QAbstractScrollArea::changeEvent(event);
  if (event->type() == QEvent::FontChange) {
    take_font();
    lay_out();
    return part_changed();
  }
  if (event->type() != QEvent::PaletteChange) return;
  colours_ = colours_for(palette());
  part_changed();
}

}  // namespace shardwright::gui
