// The base of the painted views: it pans and zooms their content, finds the item under the mouse
// and keeps the selected one.
//
//   Ctrl + wheel, W S, + -                  zoom about the cursor
//   wheel                                   zoom, or scroll the rows, as the view decides
//   Shift + wheel, Shift + arrow keys, A D  pan
//   middle drag, Shift + drag               pan
//   Home, double click                      show all
//   Backspace                               show the part before
//   click                                   select the item there, or nothing
//   Esc                                     end a drag as if it had not begun, else clear the
//   selection
//
// A view adds keys of its own and says what a drag without Shift does.
//
// Views are painted in units, of which a letter of the widget's font has twelve: all of a view
// grows with the letters. Places and sizes are in units, but for those of Qt's events and widgets.
#pragma once

#include <QAbstractScrollArea>
#include <QKeyCombination>
#include <QSinglePointEvent>
#include <algorithm>
#include <functional>
#include <initializer_list>
#include <optional>
#include <unordered_map>
#include <vector>

#include "gui/painting/axis_window.hpp"
#include "gui/style/palette.hpp"

namespace shardwright::gui {

class NavigableArea : public QAbstractScrollArea {
  Q_OBJECT

 public:
  // Shows this part of the horizontal axis; Backspace returns to the present one.
  void show_window(double from, double to);
  // True while the mouse drags something of the view's own, as a range.
  bool is_dragging() const { return drag_ == Drag::Own; }
  // The pixels of a unit.
  double unit() const { return unit_; }
  // The height of the rows beyond the viewport, in pixels.
  int hidden_height() const { return hidden_height_; }
  // The size by which the view must grow, in pixels, so that a picture of it shows all of its rows.
  virtual QSize growth_of_picture() const { return {0, 0}; }

 protected:
  // The axes that a view zooms: time views zoom the horizontal one, maps both equally.
  enum class Zoom : std::uint8_t { Horizontal, Both };

  NavigableArea(const QString& accessible_name, Zoom zoom, QWidget* parent);

  const Colours& colours() const { return colours_; }
  const QPointF& press_position() const { return pressed_; }
  // The viewport, in units.
  QSizeF room() const { return QSizeF(viewport()->size()) / unit_; }

  virtual AxisWindow& window() = 0;
  virtual AxisWindow& rows() = 0;
  virtual bool is_empty() const = 0;
  // The area of the viewport that pans and zooms.
  virtual QRectF plot() const = 0;
  virtual void paint(QPainter& painter) = 0;
  virtual QString tool_tip_at(const QPointF& position) const = 0;
  // Fits the content to a viewport of another size.
  virtual void lay_out() = 0;
  virtual void part_changed() { viewport()->update(); }

  virtual void hover(std::optional<QPointF> position) = 0;
  virtual void click(const QPointF& position) = 0;
  virtual void clear_selection() = 0;
  // True if a drag that begins there is the view's own; else it pans.
  virtual bool begin_drag(const QPointF& position) = 0;
  virtual void drag_to(const QPointF& /*position*/) {}
  virtual void end_drag(const QPointF& /*position*/) {}
  virtual void cancel_drag() {}
  virtual bool wheel_zooms_at(const QPointF& /*position*/) const { return true; }
  virtual bool double_click_fits_at(const QPointF& /*position*/) const { return true; }
  // The place that keys zoom about while the mouse is elsewhere.
  virtual QPointF zoom_centre() const { return plot().center(); }

  // Runs `action` on each of these keys, instead of what they did before. A key that has no action
  // with Shift has there the one without.
  void on_keys(std::initializer_list<QKeyCombination> keys, const std::function<void()>& action);
  // Shows all of a new time axis, which ends at `limit`, or the corner of a new map. Both forget
  // the parts before.
  void start_with(double limit);
  void start_with(const QSizeF& map);
  void set_rows_height(double height);
  // Shows all of a time axis, and a map without zoom.
  void fit();
  void zoom_about(const QPointF& position, double factor);
  void show_part(const AxisWindow& window, const AxisWindow& rows, bool remember);
  void pan(const QPointF& pixels);
  // Brings the value at this place of an area that shows the whole axis into the middle.
  void look_at(const QRectF& overview, double x);

  bool event(QEvent* event) override;
  bool viewportEvent(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void changeEvent(QEvent* event) override;
  void scrollContentsBy(int dx, int dy) override;

 private:
  enum class Drag : std::uint8_t { None, Pan, Own };
  struct Part {
    AxisWindow window, rows;
  };

  void take_font();
  // The place of the mouse, in units.
  QPointF place_of(const QSinglePointEvent& event) const { return event.position() / unit_; }
  void add_keys();
  void zoom_by_key(double factor);
  void show_earlier_part();
  void end_mouse_drag();
  void update_scroll_bars();

  Zoom zoom_;
  Colours colours_;
  double unit_ = 1.0;
  int hidden_height_ = 0;
  std::unordered_map<int, std::function<void()>> keys_;
  std::vector<Part> earlier_;
  QPointF pressed_, last_;
  Drag drag_ = Drag::None;
  bool left_button_ = false;
  // True once the mouse has left the place where its button went down.
  bool moved_ = false;
  bool setting_bars_ = false;
};

// A view of a scene whose items can be pointed at and selected. `Scene` extends PaintedScene.
template <class Scene>
class NavigableView : public NavigableArea {
 public:
  using Item = typename Scene::Item;

  const Scene& scene() const { return scene_; }
  virtual std::optional<Item> item_at(const QPointF& position) const = 0;

  void select(const Item& item) { change_selection(item); }
  // Lets nothing stand out until the mouse moves on.
  void clear_selection() override {
    hover(std::nullopt);
    change_selection(std::nullopt);
  }

 protected:
  using NavigableArea::NavigableArea;

  virtual void selection_changed() = 0;

  // Returns the value of the horizontal axis at this place of the viewport or the nearest in the
  // plot.
  double time_at(double x) const {
    const QRectF area = plot();
    return scene_.window.value_at(std::clamp(x - area.left(), 0.0, area.width()), area.width());
  }
  AxisWindow& window() final { return scene_.window; }
  AxisWindow& rows() final { return scene_.rows; }
  void hover(std::optional<QPointF> position) final {
    const auto item = position ? item_at(*position) : std::nullopt;
    if (item == scene_.hovered) return;
    scene_.hovered = item;
    viewport()->update();
  }
  void click(const QPointF& position) override { change_selection(item_at(position)); }

  Scene scene_;

 private:
  void change_selection(const std::optional<Item>& item) {
    if (item == scene_.selected) return;
    scene_.selected = item;
    viewport()->update();
    selection_changed();
  }
};

}  // namespace shardwright::gui
