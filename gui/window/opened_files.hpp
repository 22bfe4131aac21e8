// The files whose content the window shows and those that it showed before, which sessions keep.
#pragma once

#include <QFileSystemWatcher>
#include <QObject>
#include <QStringList>
#include <QTimer>
#include <cstdint>
#include <map>
#include <optional>

#include "core/base/enum_names.hpp"

class QSettings;

namespace shardwright::gui {

// The files that were opened last, newest first.
class RecentFiles {
 public:
  static constexpr int kMost = 10;

  void add(const QString& path);
  const QStringList& paths() const { return paths_; }

  void save(QSettings& settings) const;
  void restore(const QSettings& settings);

 private:
  QStringList paths_;
};

// Files of a kind take the place of others of that kind. Parts are the files that the scenario
// names, profiles those of the forecast; its own file is open until a field is edited.
enum class OpenedKind : std::uint8_t { Plans, Timelines, Runs, Parts, Profiles, Scenario };

class OpenedFiles : public QObject {
  Q_OBJECT

 public:
  explicit OpenedFiles(QObject* parent);

  void set(OpenedKind kind, const QStringList& paths);
  const QStringList& of(OpenedKind kind) const { return paths_[kind]; }
  QStringList paths() const;

  // Saves all but parts and profiles, whose fields name them themselves, and `more`, the files that
  // are being read and the folder of a run that goes on.
  void save(QSettings& settings, const QStringList& more) const;
  static QStringList of_last_session(const QSettings& settings);

 Q_SIGNALS:
  // Emitted after each time that a file was written or removed since it was read, once its writer
  // rests. Folders of runs change all the time, and RunView follows them anyway.
  void changed(const QString& path, bool exists);
  // A changed file was read again or is no longer shown.
  void settled(const QString& path);

 private:
  void watch();
  void report_changes();

  EnumArray<OpenedKind, QStringList> paths_;
  QFileSystemWatcher watcher_;
  QTimer pause_;
  QStringList touched_;
  // True if the file existed at the last `changed`; none if it was written since.
  std::map<QString, std::optional<bool>> reported_;
};

}  // namespace shardwright::gui
