#include "gui/window/opened_files.hpp"

#include <QFileInfo>
#include <QSettings>
#include <utility>

namespace shardwright::gui {
namespace {

constexpr int kRestMs = 300;

QString settings_key() {
  return QStringLiteral("opened_files");
}

}  // namespace

OpenedFiles::OpenedFiles(QObject* parent) : QObject(parent) {
  pause_.setSingleShot(true);
  pause_.setInterval(kRestMs);
  connect(&pause_, &QTimer::timeout, this, &OpenedFiles::tell);
  connect(&watcher_, &QFileSystemWatcher::fileChanged, this, [this](const QString& path) {
    if (!touched_.contains(path)) touched_.append(path);
    pause_.start();
  });
}

void OpenedFiles::set(OpenedKind kind, const QStringList& paths) {
  QStringList& own = paths_[static_cast<std::size_t>(kind)];
  if (own.isEmpty() && paths.isEmpty()) return;
  own.clear();
  for (const QString& path : paths) own.append(QFileInfo(path).absoluteFilePath());
  // What was just read is what it is: earlier changes of it count no more.
  for (const QString& path : own) touched_.removeAll(path);
  watch();
}

QStringList OpenedFiles::paths() const {
  QStringList all;
  for (const QStringList& each : paths_) all += each;
  return all;
}

void OpenedFiles::watch() {
  if (const QStringList watched = watcher_.files(); !watched.isEmpty())
    watcher_.removePaths(watched);
  QStringList files;
  for (const QString& path : paths()) {
    if (QFileInfo(path).isFile()) files.append(path);
  }
  if (!files.isEmpty()) watcher_.addPaths(files);
}

void OpenedFiles::tell() {
  const QStringList touched = std::exchange(touched_, {});
  if (touched.isEmpty()) return;
  // Where a file was replaced by another one of its name, the watcher has lost it.
  for (const QString& path : touched) {
    if (QFileInfo(path).isFile() && !watcher_.files().contains(path)) watcher_.addPath(path);
  }
  Q_EMIT changed(touched);
}

void OpenedFiles::save(QSettings& settings) const {
  QStringList kept;
  for (const OpenedKind kind : {OpenedKind::Plans, OpenedKind::Timelines, OpenedKind::Runs})
    kept += paths_[static_cast<std::size_t>(kind)];
  settings.setValue(settings_key(), kept);
}

QStringList OpenedFiles::of_last_session(const QSettings& settings) {
  QStringList there;
  for (const QString& path : settings.value(settings_key()).toStringList()) {
    if (QFileInfo::exists(path)) there.append(path);
  }
  return there;
}

}  // namespace shardwright::gui
