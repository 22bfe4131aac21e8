#include "gui/window/opened_files.hpp"

#include <QFileInfo>
#include <QSettings>
#include <algorithm>
#include <utility>

#include "gui/models/text.hpp"
#include "gui/views/view.hpp"

namespace shardwright::gui {
namespace {

constexpr int kRestMs = 300;
constexpr int kGoneMs = 1000;

QString settings_key() {
  return u"opened_files"_s;
}

}  // namespace

void RecentFiles::add(const QString& path) {
  const QString absolute = QFileInfo(path).absoluteFilePath();
  paths_.removeAll(absolute);
  paths_.prepend(absolute);
  while (paths_.size() > kMost) paths_.removeLast();
}

void RecentFiles::save(QSettings& settings) const {
  save_list(settings, u"recent_files"_s, paths_);
}

void RecentFiles::restore(const QSettings& settings) {
  paths_ = settings.value(u"recent_files"_s).toStringList().mid(0, kMost);
}

OpenedFiles::OpenedFiles(QObject* parent) : QObject(parent) {
  pause_.setSingleShot(true);
  connect(&pause_, &QTimer::timeout, this, &OpenedFiles::report_changes);
  connect(&watcher_, &QFileSystemWatcher::fileChanged, this, [this](const QString& path) {
    if (!touched_.contains(path)) touched_.append(path);
    reported_[path].reset();
    pause_.start(kRestMs);
  });
}

void OpenedFiles::set(OpenedKind kind, const QStringList& paths) {
  QStringList& own = paths_[kind];
  QStringList absolute;
  for (const QString& path : paths) absolute.append(QFileInfo(path).absoluteFilePath());
  if (own.isEmpty() && absolute.isEmpty()) return;
  own = absolute;
  // Earlier changes of a file that was just read no longer count.
  for (const QString& path : own) touched_.removeAll(path);
  watch();
  report_changes();
}

QStringList OpenedFiles::paths() const {
  QStringList all;
  for (const QStringList& each : paths_) all += each;
  all.removeDuplicates();
  return all;
}

void OpenedFiles::watch() {
  if (const QStringList watched = watcher_.files(); !watched.isEmpty())
    watcher_.removePaths(watched);
  for (const QString& path : paths()) {
    if (QFileInfo(path).isFile()) watcher_.addPath(path);
  }
}

// Watches files anew that were replaced by others of their names, which the watcher loses, and
// looks again for files that are gone.
void OpenedFiles::report_changes() {
  const QStringList open = paths();
  touched_.removeIf([&](const QString& path) { return !open.contains(path); });
  QStringList settled_now;
  for (const auto& [path, there] : reported_) {
    if (!touched_.contains(path)) settled_now.append(path);
  }
  for (const QString& path : settled_now) {
    reported_.erase(path);
    Q_EMIT settled(path);
  }
  for (const QString& path : QStringList(touched_)) {
    const bool there = QFileInfo(path).isFile();
    if (!there) pause_.start(kGoneMs);
    if (there && !watcher_.files().contains(path)) watcher_.addPath(path);
    if (std::exchange(reported_[path], there) != there) Q_EMIT changed(path, there);
  }
}

void OpenedFiles::save(QSettings& settings, const QStringList& more) const {
  QStringList kept = more;
  // A folder is that of a run, which takes the place of others.
  const bool brings_run = std::any_of(more.begin(), more.end(),
                                      [](const QString& path) { return QFileInfo(path).isDir(); });
  for (const OpenedKind kind : {OpenedKind::Plans, OpenedKind::Timelines, OpenedKind::Runs}) {
    if (kind != OpenedKind::Runs || !brings_run) kept += of(kind);
  }
  kept.removeDuplicates();
  save_list(settings, settings_key(), kept);
}

QStringList OpenedFiles::of_last_session(const QSettings& settings) {
  QStringList there;
  for (const QString& path : settings.value(settings_key()).toStringList()) {
    if (QFileInfo::exists(path)) there.append(path);
  }
  return there;
}

}  // namespace shardwright::gui
