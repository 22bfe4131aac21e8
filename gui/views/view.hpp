// The base of all views: a widget that can hand over its data. Lists that views store in a session.
#pragma once

#include <QSettings>
#include <QWidget>
#include <utility>
#include <vector>

#include "gui/models/table_text.hpp"

namespace shardwright::gui {

// A part of a view as a report has it. Each member may be empty.
struct ReportPart {
  QString title;
  // Sentences, a paragraph a line.
  QString text;
  QWidget* picture = nullptr;
  TextTable table;
};

class View : public QWidget {
  Q_OBJECT

 public:
  using QWidget::QWidget;

  // Whether anything of the view is in front. Behind the tab of another it counts as visible for Qt, which
  // moves it out of the window.
  bool is_looked_at() const { return isVisible() && !visibleRegion().isEmpty(); }

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
};

// Stores a list in a session. Leaves an empty one out, which Qt would write as a value that cannot be
// read.
inline void save_list(QSettings& session, const QString& key, const QStringList& list) {
  if (list.isEmpty()) {
    session.remove(key);
  } else {
    session.setValue(key, list);
  }
}

}  // namespace shardwright::gui
