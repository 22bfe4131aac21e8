// The base of all views: a widget that can hand over its data. Lists that views store in a session.
#pragma once

#include <QSettings>
#include <QWidget>
#include <functional>
#include <utility>
#include <vector>

#include "gui/models/table_text.hpp"

class QDockWidget;

namespace shardwright::gui {

// A part of a view as a report has it. Each member may be empty.
struct ReportPart {
  QString title;
  // Sentences, a paragraph a line.
  QString text;
  QWidget* picture = nullptr;
  TextTable table;
};

// True unless the dock is closed or behind the tab of another, where Qt counts it as visible.
bool is_in_front(const QDockWidget& dock);

class View : public QWidget {
  Q_OBJECT

 public:
  using QWidget::QWidget;

  // True unless the view is closed or behind the tab of another.
  bool is_looked_at() const;

  // True while the view computes what it shows.
  virtual bool is_busy() const { return false; }
  // Computes what the view lacks if it is looked at: nothing is computed for a view that nobody
  // sees.
  virtual void look_again() {}
  // Computes what the view lacks also where it is not looked at, and calls `ready` once the view
  // shows it or says why it cannot.
  void fill_then(std::function<void()> ready);

  // The shown data as a table; empty if there is none.
  virtual TextTable table() const = 0;
  // The same as a table that is made on demand, for views whose table may take long.
  virtual LazyTable lazy_table() const {
    TextTable made = table();
    const std::size_t rows = made.rows.size();
    return {rows, [made = std::move(made)](const std::stop_token&) { return made; }};
  }

  // What a report shows of the view; nothing while the view shows nothing.
  virtual std::vector<ReportPart> report() const { return {}; }

 Q_SIGNALS:
  // An error for the message bar of the window; an empty text removes it.
  void problem(const QString& text);

 protected:
  // True if somebody looks at the view or waits for what it shows.
  bool is_wanted() const { return is_looked_at() || ready_; }
  // Tells who waits for the view that it shows all it can. Does nothing while the view is busy.
  void call_ready();

 private:
  std::function<void()> ready_;
};

// Stores a list in a session. Leaves an empty one out, which Qt would write as a value that cannot
// be read.
inline void save_list(QSettings& session, const QString& key, const QStringList& list) {
  if (list.isEmpty()) {
    session.remove(key);
  } else {
    session.setValue(key, list);
  }
}

}  // namespace shardwright::gui
