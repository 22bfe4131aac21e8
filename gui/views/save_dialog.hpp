// Asks for the name of a file to write.
#pragma once

#include <QString>
#include <QWidget>

namespace shardwright::gui {

// Empty if nobody named one. A name without a suffix gets `suffix`, before the dialog asks whether
// a file that is there may be written over. `filter` as QFileDialog has it: "Plan files (*.json)".
QString ask_for_file(QWidget* parent, const QString& title, const QString& suggestion,
                     const QString& filter, const QString& suffix);

}  // namespace shardwright::gui
