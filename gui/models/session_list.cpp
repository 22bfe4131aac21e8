#include "gui/models/session_list.hpp"

#include <QSettings>

namespace shardwright::gui {

void save_list(QSettings& session, const QString& key, const QStringList& list) {
  if (list.isEmpty()) {
    session.remove(key);
  } else {
    session.setValue(key, list);
  }
}

}  // namespace shardwright::gui
