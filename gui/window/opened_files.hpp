// The files whose content the window shows: watched for changes, and opened again in the next
// session.
#pragma once

#include <QFileSystemWatcher>
#include <QObject>
#include <QStringList>
#include <QTimer>
#include <array>
#include <cstdint>

class QSettings;

namespace shardwright::gui {

// What takes the place of what: plans that of other plans, and so on.
enum class OpenedKind : std::uint8_t { Plans, Timelines, Runs, Parts };
inline constexpr std::size_t kOpenedKinds = 4;

class OpenedFiles : public QObject {
  Q_OBJECT

 public:
  explicit OpenedFiles(QObject* parent);

  // These are shown now, instead of the files of that kind before them.
  void set(OpenedKind kind, const QStringList& paths);
  QStringList paths() const;

  // Clusters and models are left out: the scenario names those itself.
  void save(QSettings& settings) const;
  // Those of the last session that still exist.
  static QStringList of_last_session(const QSettings& settings);

 Q_SIGNALS:
  // These were written or removed since; told together, once that their writer rests. Folders of
  // runs change all the time, and are followed anyway.
  void changed(const QStringList& paths);

 private:
  void watch();
  void tell();

  std::array<QStringList, kOpenedKinds> paths_;
  QFileSystemWatcher watcher_;
  QTimer pause_;
  QStringList touched_;
};

}  // namespace shardwright::gui
