// How far files are read: told by the thread that reads them, asked for by the window.
#pragma once

#include <QString>
#include <QStringList>
#include <QtGlobal>
#include <mutex>
#include <stop_token>

#include "core/base/large_json_file.hpp"

namespace shardwright::gui {

class ReadingProgress {
 public:
  struct State {
    // "Reading step.json"; empty if nothing has begun.
    QString doing;
    // The bytes that were read and parsed.
    qint64 bytes = 0;
    // The bytes of all files.
    qint64 total = 0;
  };

  // Counts the bytes of all that is named: files, and of folders of runs what is read of them.
  void begin(const QStringList& paths);
  // What follows the bytes that were read, or what they are of.
  void doing(const QString& what);
  // Takes a file for read that was not read to its end, so that the whole comes out.
  void skip_to(qint64 bytes);
  // For the readers of a file.
  ReadingWatch watch(const std::stop_token& stop);

  State state() const;

 private:
  mutable std::mutex mutex_;
  State state_;
};

// Of a file, or of what is read of a folder.
qint64 bytes_to_read(const QString& path);

}  // namespace shardwright::gui
