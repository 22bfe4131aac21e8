// The files that were opened last, newest first, kept between sessions.
#pragma once

#include <QStringList>

class QSettings;

namespace shardwright::gui {

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

}  // namespace shardwright::gui
