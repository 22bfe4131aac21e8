// Values of a session file that Qt cannot read.
#pragma once

#include <QStringList>

class QSettings;

namespace shardwright::gui {

// Reads all of the session and removes what cannot be read, of which Qt tells on standard error
// alone. Returns what was removed, each by its key; the file's name stands for lines that hold no
// value.
QStringList drop_damaged_values(QSettings& session);

}  // namespace shardwright::gui
