// Lists of a session.
#pragma once

#include <QStringList>

class QSettings;

namespace shardwright::gui {

// Qt would write an empty list as a value that cannot be read, so it is left out.
void save_list(QSettings& session, const QString& key, const QStringList& list);

}  // namespace shardwright::gui
