// Files as the window names them.
#pragma once

#include <QStringList>

namespace shardwright::gui {

// The name of each file, with as many of its folders as tell it from the others:
// "fast/plan.json" beside "slow/plan.json".
QStringList telling_names(const QStringList& paths);

// Each file once, however its path is spelt, as it came first; the others go to `repeated`.
QStringList each_once(const QStringList& paths, QStringList& repeated);

}  // namespace shardwright::gui
