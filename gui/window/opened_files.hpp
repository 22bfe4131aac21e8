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
#include <optional>

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
  // One was written, or removed, since it was read, once that its writer rests; and again each time
  // that it is written. Folders of runs change all the time, and are followed anyway.
  void changed(const QString& path, bool exists);
  // One that had changed was read again or is shown no more.
  void settled(const QString& path);

 private:
  void watch();
  void tell();

  std::array<QStringList, kOpenedKinds> paths_;
  QFileSystemWatcher watcher_;
  QTimer pause_;
  QStringList touched_;
  // Whether each of them was there when that was told last; none: it was written since.
  std::map<QString, std::optional<bool>> told_;
};

}  // namespace shardwright::gui
