#pragma once

#include <gtest/gtest.h>

#include <QContextMenuEvent>
#include <QMenu>
#include <QTableWidget>
#include <QTest>

#include "gui/timeline/timeline_view.hpp"
#include "tests/gui/example_step.hpp"
#include "tests/gui/painted_view_test.hpp"

namespace shardwright::gui::fixtures {

inline TimelineTracks tracks_of(std::vector<std::shared_ptr<const Timeline>> timelines,
                                const sim::ReservedMemory& reserved = {},
                                const QStringList& names = {}) {
  TimelineTracks tracks;
  tracks.set_timelines(std::move(timelines), {reserved}, names);
  return tracks;
}

class TimelineViewTest : public ::testing::Test {
 protected:
  TimelineViewTest() {
    const DeviceLimits limits{gigabytes(80.0), FlopPerSecond(989e12), BytesPerSecond(450e9),
                              BytesPerSecond(50e9)};
    view_.set_timelines({small_step().timeline}, small_step().program, {{limits}});
    shown(view_, {1000, 600});
  }

  TimelineCanvas& canvas() { return view_.canvas(); }
  const TimelineTracks& tracks() { return canvas().tracks(); }
  // The selected op.
  SpanRef selected() { return canvas().scene().selected.value(); }
  QWidget& paper() { return *canvas().viewport(); }
  const AxisWindow& window() const { return view_.canvas().scene().window; }
  TimelineGeometry geometry() {
    const TimelineScene& scene = canvas().scene();
    return {QSizeF(paper().size()), scene.legend, scene.widest_name};
  }
  double time_at(double x) {
    return window().value_at(x - geometry().plot.left(), geometry().plot.width());
  }
  // Returns the middle of a span on the screen.
  QPointF place_of(SpanRef ref) {
    const Track& track = tracks().tracks()[*tracks().track_of(ref)];
    const Span& span = tracks().span(ref);
    const double middle = span.start.value() + 0.5 * span.duration.value();
    return {geometry().plot.left() + window().pixel_of(middle, geometry().plot.width()),
            geometry().plot.top() + track.y - canvas().scene().rows.from + track.height / 2.0};
  }
  QTableWidget& statistics() { return *view_.findChild<QTableWidget*>(u"statistics"_s); }
  void press(Qt::Key key) { QTest::keyClick(&canvas(), key); }

  TimelineView view_;
};

// Triggers an entry of the menu at a place, or of one of its submenus, and closes the menu.
inline void choose(QWidget& view, QWidget& paper, const QPointF& place, const QString& text,
                   const QString& submenu = {}) {
  QContextMenuEvent event(QContextMenuEvent::Mouse, place.toPoint(),
                          paper.mapToGlobal(place.toPoint()));
  QCoreApplication::sendEvent(&paper, &event);
  const auto menus = view.findChildren<QMenu*>(QString(), Qt::FindDirectChildrenOnly);
  ASSERT_FALSE(menus.isEmpty());
  QMenu* menu = menus.back();
  for (const QAction* action : menu->actions()) {
    if (action->menu() != nullptr && action->text() == submenu) menu = action->menu();
  }
  QAction* wanted = nullptr;
  for (QAction* action : menu->actions()) {
    if (action->text() == text) wanted = action;
  }
  ASSERT_NE(wanted, nullptr) << qPrintable(text);
  wanted->trigger();
  menus.back()->close();
  QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
}

}  // namespace shardwright::gui::fixtures
