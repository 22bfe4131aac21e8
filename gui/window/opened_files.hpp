// The files whose content the window shows: watched for changes, and opened again in the next
// session.
#pragma once

#include <QFileSystemWatcher>
#include <QObject>
#include <QStringList>
#include <QTimer>
#include <array>
#include <cstdint>
#include <map>

class QSettings;

namespace shardwright::gui {

// What takes the place of what: plans that of other plans, and so on. Parts are the files that the
// scenario names.
enum class OpenedKind : std::uint8_t { Plans, Timelines, Runs, Parts };
inline constexpr std::size_t kOpenedKinds = 4;

class OpenedFiles : public QObject {
  Q_OBJECT

 public:
  explicit OpenedFiles(QObject* parent);

  // These are shown now, instead of the files of that kind before them.
  void set(OpenedKind kind, const QStringList& paths);
  const QStringList& of(OpenedKind kind) const { return paths_[static_cast<std::size_t>(kind)]; }
  QStringList paths() const;

  // Without the parts: the scenario names those itself. `more`: that are being read.
  void save(QSettings& settings, const QStringList& more) const;
  // Those of the last session that still exist.
  static QStringList of_last_session(const QSettings& settings);

 Q_SIGNALS:
  // All that were written or removed since they were read, once that their writers rest; none when
  // they were read again or are shown no more. Folders of runs change all the time, and are
  // followed anyway.
  void changed(const QStringList& paths);

 private:
  void watch();
  void tell();

  std::array<QStringList, kOpenedKinds> paths_;
  QFileSystemWatcher watcher_;
  QTimer pause_;
  QStringList touched_;
  std::map<QString, bool> told_;  // what was told last: which, and whether they are there
};

}  // namespace shardwright::gui
