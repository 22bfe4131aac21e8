#include "gui/models/written_file.hpp"

#include <QFile>
#include <QFileInfo>
#include <QSaveFile>

#include "core/base/error.hpp"

namespace shardwright::gui {
namespace {

[[noreturn]] void fail(const QFileDevice& file) {
  throw RuntimeFailure((file.fileName() + QStringLiteral(": ") + file.errorString()).toStdString());
}

// A device or a pipe: another file by its name would take its place. Without a buffer, so that the
// write itself fails.
void write_through(const QString& path, const QByteArray& bytes) {
  QFile file(path);
  if (!file.open(QIODevice::WriteOnly | QIODevice::Unbuffered) || file.write(bytes) != bytes.size())
    fail(file);
}

}  // namespace

void write_file(const QString& file, const QByteArray& bytes) {
  const QFileInfo there(file);
  if (there.exists() && !there.isFile() && !there.isDir()) return write_through(file, bytes);
  QSaveFile target(file);
  target.setDirectWriteFallback(true);  // a file that may be written in a folder that may not
  if (!target.open(QIODevice::WriteOnly) || target.write(bytes) != bytes.size() || !target.commit())
    fail(target);
}

void write_text_file(const QString& file, const QString& text) {
  write_file(file, text.toUtf8());
}

}  // namespace shardwright::gui
