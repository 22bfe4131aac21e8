// What is said of a file of a run that cannot be written.
#pragma once

#include <filesystem>

namespace shardwright::executor {

// Right after the call that failed: "FILE: cannot be written: REASON" with the system's reason
// (errno). Throws RuntimeFailure.
[[noreturn]] void fail_to_write(const std::filesystem::path& file);

}  // namespace shardwright::executor
