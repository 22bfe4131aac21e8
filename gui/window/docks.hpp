// The docks of the window: their places, which one is in front, and the focus among them.
#pragma once

#include <QByteArray>
#include <QObject>
#include <QSize>
#include <QStringList>
#include <vector>

class QDockWidget;
class QMainWindow;
class QSettings;

namespace shardwright::gui {

class Docks : public QObject {
  Q_OBJECT

 public:
  explicit Docks(QMainWindow* window);

  // In their order; the object name of a dock is the id of its view.
  const std::vector<QDockWidget*>& all() const { return docks_; }
  void add(const QString& id, const QString& title, QWidget* view, Qt::DockWidgetArea area);
  // Puts the docks into their first places: the first on the left over the whole height, the second
  // above all others, which share a place.
  void arrange();
  // Takes the present layout as the one that reset() returns to.
  void keep_as_default();
  void reset();
  // Deletes the docks. Their views lose the focus as they go and may use parts of the window then,
  // so that its base class, which would delete them last, is too late.
  void clear();

  QWidget* view(const QString& id) const;
  void raise(const QString& id);
  // The dock that the user looks at: with the focus, else the last that had it; never one that is
  // closed or behind another while any is in front.
  QDockWidget* current() const;

  // Moves the focus, passing over views that are behind the tab of another: Qt counts them as
  // visible. False if there is no other widget.
  bool focus_next(bool forward);

  // Without a central widget the docks on both sides share what a window gains by halves. The views
  // shall have it: the first dock keeps the width that it was given. To be called after the window
  // was resized.
  void hold_first_width();

  void save(QSettings& settings) const;
  // Returns the keys of values that no window has written.
  QStringList restore(const QSettings& settings);
  // The largest size of the window on its screen. Leaves room for the frame, whose size is unknown
  // before the window is shown.
  QSize largest_size() const;

 protected:
  // A new width of the first dock is the user's wish if the window keeps its size.
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QDockWidget* dock_of(const QWidget* widget) const;
  // A tab takes no focus when it is clicked, and a view that goes behind another keeps its own: keys
  // would change what nobody sees.
  void bring_focus_to_front(QDockWidget* dock);

  QMainWindow* window_;
  std::vector<QDockWidget*> docks_;
  // The last dock that had the focus.
  QDockWidget* last_ = nullptr;
  // The size of the window when its docks had their places.
  QSize laid_out_;
  // As the user or the session has it; 0 if it is not known yet.
  int first_width_ = 0;
  QByteArray default_layout_;
};

}  // namespace shardwright::gui
