#include "gui/models/written_file.hpp"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QSaveFile>
#include <QSet>
#include <string>
#include <vector>

#include "core/base/distinct_names.hpp"
#include "core/base/error.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

[[noreturn]] void fail(const QFileDevice& file, const QString& expected) {
  throw RuntimeFailure(
      u"%1: %2; expected %3"_s.arg(file.fileName(), file.errorString(), expected).toStdString());
}

// Describes the path that is expected in the place of one that cannot be opened.
QString expected_of(const QString& path) {
  const QFileInfo there(path);
  if (there.isDir()) return u"the name of a file, not of a folder"_s;
  if (!there.dir().exists()) return u"a folder that exists, which %1 does not"_s.arg(there.path());
  return u"a file and a folder that may be written to"_s;
}

QString room_for(const QByteArray& bytes) {
  return u"room for %1 bytes"_s.arg(bytes.size());
}

// Writes to a device or a pipe, which a new file of that name would replace. There is no buffer, so
// that the write itself fails.
void write_through(const QString& path, const QByteArray& bytes) {
  QFile file(path);
  if (!file.open(QIODevice::WriteOnly | QIODevice::Unbuffered)) fail(file, expected_of(path));
  if (file.write(bytes) != bytes.size()) fail(file, room_for(bytes));
}

// Returns the path of the file behind all links, or its own path if it is gone.
QString place_of(const QString& path) {
  const QFileInfo file(path);
  const QString canonical = file.canonicalFilePath();
  return canonical.isEmpty() ? QDir::cleanPath(file.absoluteFilePath()) : canonical;
}

}  // namespace

void write_file(const QString& file, const QByteArray& bytes) {
  const QFileInfo there(file);
  if (there.exists() && !there.isFile() && !there.isDir()) return write_through(file, bytes);
  QSaveFile target(file);
  // The folder may refuse a new file while the file itself may be written.
  target.setDirectWriteFallback(true);
  if (!target.open(QIODevice::WriteOnly)) fail(target, expected_of(file));
  if (target.write(bytes) != bytes.size() || !target.commit()) fail(target, room_for(bytes));
}

void write_text_file(const QString& file, const QString& text) {
  write_file(file, text.toUtf8());
}

QStringList distinct_names(const QStringList& paths) {
  std::vector<std::string> standard;
  for (const QString& path : paths) standard.push_back(path.toStdString());
  QStringList names;
  for (const std::string& name : shardwright::distinct_names(standard))
    names.append(to_qstring(name));
  return names;
}

QStringList each_once(const QStringList& paths, QStringList& repeated) {
  QStringList once;
  QSet<QString> places;
  for (const QString& path : paths) {
    const QString place = place_of(path);
    (places.contains(place) ? repeated : once).append(path);
    places.insert(place);
  }
  return once;
}

}  // namespace shardwright::gui
