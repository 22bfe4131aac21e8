#include "core/base/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace shardwright {

FolderLock::FolderLock(const std::filesystem::path& folder, IfHeld if_held)
    : folder_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (folder_ < 0) return;
  const int how = LOCK_EX | (if_held == IfHeld::GiveUp ? LOCK_NB : 0);
  int failed = flock(folder_, how);
  while (failed != 0 && errno == EINTR) failed = flock(folder_, how);
  is_ours_ = failed == 0 || errno != EWOULDBLOCK;
}

FolderLock::~FolderLock() {
  if (folder_ >= 0) close(folder_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : folder_(std::exchange(other.folder_, -1)), is_ours_(other.is_ours_) {}

}  // namespace shardwright
