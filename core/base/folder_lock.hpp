// A folder that one process at a time holds.
#pragma once

#include <filesystem>

namespace shardwright {

// The lock is advisory. The system releases it however the process ends; programs that the process
// starts do not hold it. On file systems without locks everybody gets it.
class FolderLock {
 public:
  enum class IfHeld { GiveUp, Wait };

  // Locks a folder that exists.
  FolderLock(const std::filesystem::path& folder, IfHeld if_held);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  FolderLock& operator=(FolderLock&&) = delete;

  // False where another process, or another lock of this one, holds the folder.
  bool is_ours() const { return is_ours_; }

 private:
  int folder_ = -1;
  bool is_ours_ = true;
};

}  // namespace shardwright
