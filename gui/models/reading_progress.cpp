#include "gui/models/reading_progress.hpp"

#include <QFileInfo>
#include <algorithm>

#include "gui/models/run_folder.hpp"

namespace shardwright::gui {

qint64 bytes_to_read(const QString& path) {
  const QFileInfo info(path);
  if (!info.isDir()) return info.isFile() ? info.size() : 0;
  const auto run = find_run(path);
  qint64 bytes = 0;
  if (run) {
    for (const QString& timeline : run->timelines) bytes += QFileInfo(timeline).size();
  }
  return bytes;
}

void ReadingProgress::begin(const QStringList& paths) {
  qint64 total = 0;
  for (const QString& path : paths) total += bytes_to_read(path);
  const std::lock_guard lock(mutex_);
  state_ = {{}, 0, total};
}

void ReadingProgress::doing(const QString& what) {
  const std::lock_guard lock(mutex_);
  state_.doing = what;
}

void ReadingProgress::skip_to(qint64 bytes) {
  const std::lock_guard lock(mutex_);
  state_.bytes = std::max(state_.bytes, bytes);
}

ReadingWatch ReadingProgress::watch(const std::stop_token& stop) {
  return {[this](std::uintmax_t bytes) {
            const std::lock_guard lock(mutex_);
            state_.bytes += static_cast<qint64>(bytes);
          },
          stop};
}

ReadingProgress::State ReadingProgress::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

}  // namespace shardwright::gui
