// Files that the window writes: whole, or not at all.
#pragma once

#include <QByteArray>
#include <QString>

namespace shardwright::gui {

// What was there before stays until all of `bytes` are on the disk. Throws RuntimeFailure, with the
// file and the reason, if they do not come there.
void write_file(const QString& file, const QByteArray& bytes);
void write_text_file(const QString& file, const QString& text);

}  // namespace shardwright::gui
