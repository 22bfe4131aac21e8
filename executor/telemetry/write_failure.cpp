#include "executor/telemetry/write_failure.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.hpp"

namespace shardwright::executor {

void fail_to_write(const std::filesystem::path& file) {
  const char* reason = std::strerror(errno);
  throw RuntimeFailure(fmt::format("{}: cannot be written: {}", file.string(), reason));
}

}  // namespace shardwright::executor
