// Files as the window names and writes them.
#pragma once

#include <QByteArray>
#include <QString>
#include <QStringList>

namespace shardwright::gui {

// Keeps the former content until all of `bytes` are on the disk. Throws RuntimeFailure with the
// file and the reason if that fails.
void write_file(const QString& file, const QByteArray& bytes);
void write_text_file(const QString& file, const QString& text);

// Returns the name of each file with as many of its folders as distinguish it from the others:
// "fast/plan.json" beside "slow/plan.json".
QStringList distinct_names(const QStringList& paths);

// Returns each file once, however its path is spelt, and puts the other paths into `repeated`.
QStringList each_once(const QStringList& paths, QStringList& repeated);

}  // namespace shardwright::gui
