#include "gui/models/written_file.hpp"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QSaveFile>

#include "core/base/error.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

[[noreturn]] void fail(const QFileDevice& file, const QString& expected) {
  throw RuntimeFailure(
      u"%1: %2; expected %3"_s.arg(file.fileName(), file.errorString(), expected).toStdString());
}

// The kind of path that is expected instead of one by which no file can be opened.
QString expected_of(const QString& path) {
  const QFileInfo there(path);
  if (there.isDir()) return u"the name of a file, not of a folder"_s;
  if (!there.dir().exists()) return u"a folder that exists, which %1 does not"_s.arg(there.path());
  return u"a file and a folder that may be written to"_s;
}

QString room_for(const QByteArray& bytes) {
  return u"room for %1 bytes"_s.arg(bytes.size());
}

// A device or a pipe: another file by its name would take its place. Without a buffer, so that the
// write itself fails.
void write_through(const QString& path, const QByteArray& bytes) {
  QFile file(path);
  if (!file.open(QIODevice::WriteOnly | QIODevice::Unbuffered)) fail(file, expected_of(path));
  if (file.write(bytes) != bytes.size()) fail(file, room_for(bytes));
}

}  // namespace

void write_file(const QString& file, const QByteArray& bytes) {
  const QFileInfo there(file);
  if (there.exists() && !there.isFile() && !there.isDir()) return write_through(file, bytes);
  QSaveFile target(file);
  target.setDirectWriteFallback(true);  // a file that may be written in a folder that may not
  if (!target.open(QIODevice::WriteOnly)) fail(target, expected_of(file));
  if (target.write(bytes) != bytes.size() || !target.commit()) fail(target, room_for(bytes));
}

void write_text_file(const QString& file, const QString& text) {
  write_file(file, text.toUtf8());
}

}  // namespace shardwright::gui
