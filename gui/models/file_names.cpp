#include "gui/models/file_names.hpp"

#include <QDir>
#include <QFileInfo>
#include <QSet>
#include <algorithm>

namespace shardwright::gui {
namespace {

// The place of the file once links are followed, or its path if it is gone.
QString place_of(const QString& path) {
  const QFileInfo file(path);
  const QString canonical = file.canonicalFilePath();
  return canonical.isEmpty() ? QDir::cleanPath(file.absoluteFilePath()) : canonical;
}

}  // namespace

QStringList telling_names(const QStringList& paths) {
  QList<QStringList> parts;
  for (const QString& path : paths)
    parts.append(
        QDir::cleanPath(QFileInfo(path).absoluteFilePath()).split(u'/', Qt::SkipEmptyParts));
  const auto tail = [&](qsizetype file, qsizetype count) { return parts[file].last(count); };
  const auto is_shared = [&](qsizetype file, qsizetype count) {
    for (qsizetype other = 0; other < parts.size(); ++other) {
      if (other != file && parts[other].size() >= count && tail(other, count) == tail(file, count))
        return true;
    }
    return false;
  };
  QStringList names;
  for (qsizetype file = 0; file < parts.size(); ++file) {
    qsizetype count = std::min<qsizetype>(1, parts[file].size());
    while (count < parts[file].size() && is_shared(file, count)) ++count;
    names.append(tail(file, count).join(u'/'));
  }
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
