#include "gui/window/recent_files.hpp"

#include <QFileInfo>
#include <QSettings>

#include "gui/models/session_list.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {

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

}  // namespace shardwright::gui
