// The docks of the window: their places, the one in front, and the focus among them.
#pragma once

#include <QByteArray>
#include <QObject>
#include <QSize>
#include <QStringList>
#include <QTimer>
#include <cstdint>
#include <optional>
#include <vector>

class QDockWidget;
class QMainWindow;
class QSettings;
class QTabBar;

namespace shardwright::gui {

enum class Layout : std::uint8_t {
  // The plans above the other views.
  First,
  // Scenario, plans and the other views beside each other: wide screens.
  Columns,
  // The plans share the place of the other views: small screens.
  OneAtATime,
};

class Docks : public QObject {
  Q_OBJECT

 public:
  explicit Docks(QMainWindow* window);

  // The docks in their order. The object name of a dock is the id of its view.
  const std::vector<QDockWidget*>& all() const { return docks_; }
  void add(const QString& id, const QString& title, QWidget* view, Qt::DockWidgetArea area);
  // Puts the docks into their first places: the first on the left over the whole height, the second
  // above all others, which share a place.
  void arrange();
  // Takes the present layout as the one that reset() returns to.
  void keep_as_default();
  void reset();
  // True if the window is so low for its letters that views above each other would be cut.
  bool has_small_room() const;
  // Shows every dock in places for screens of a kind, or in the first ones.
  void lay_out(Layout layout);

  // Gives the current view the whole window, or returns to the layout before.
  void maximise(bool on);
  bool is_maximised() const { return before_maximised_.has_value(); }
  // Deletes the docks. Their views lose the focus as they go and may then use parts of the window,
  // so its base class, which would delete them last, is too late.
  void clear();

  QWidget* view(const QString& id) const;
  void raise(const QString& id);
  // Returns the dock that has the focus, or the last one that had it; never one that is closed or
  // behind another while any is in front.
  QDockWidget* current() const;

  // Moves the focus past views that are behind the tab of another, which Qt counts as visible.
  // Returns false if there is no other widget.
  bool focus_next(bool forward);

  // Keeps the width of the first dock after the window was resized, so that the views get what the
  // window gains. Without a central widget, Qt shares that among the docks on both sides.
  void hold_first_width();

  void save(QSettings& settings) const;
  // Returns the keys of values that no window has written.
  QStringList restore(const QSettings& settings);
  // The largest size of the window on its screen. Leaves room for the frame, whose size is unknown
  // before the window is shown.
  QSize largest_size() const;

 Q_SIGNALS:
  void maximised_changed(bool on);
  // A view that was behind another or closed is in front, and has its place.
  void came_to_front();

 protected:
  // A new width of the first dock is the user's wish if the window keeps its size.
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QDockWidget* dock_of(const QWidget* widget) const;
  // Shares out a window of this size among the docks in their first places.
  void share_out(const QSize& room);
  bool restore_state(const QByteArray& state);
  // Gives a dock the whole window; `before` is the state to which it returns.
  void keep_alone(QDockWidget* kept, const QByteArray& before);
  void finish_maximising(QDockWidget* kept);
  // Leaves out the title of a dock whose tab says it already.
  void update_titles();
  void update_titles_later();
  // Offers for a dock without a title what its title offers.
  void open_tab_menu(QTabBar* tabs, const QPoint& at);
  QDockWidget* dock_titled(const QString& title) const;
  // Moves the focus on to `dock`. A clicked tab takes no focus, and a view that goes behind another
  // keeps it, so that keys would change what nobody sees.
  void bring_focus_to_front(QDockWidget* dock);

  QMainWindow* window_;
  std::vector<QDockWidget*> docks_;
  QDockWidget* last_ = nullptr;
  // The size of the window when its docks had their places.
  QSize laid_out_;
  // The width that the user or the session gave the first dock; 0 if it is unknown.
  int first_width_ = 0;
  QByteArray default_layout_;
  std::optional<QByteArray> before_maximised_;
  QTimer title_pause_;
};

}  // namespace shardwright::gui
