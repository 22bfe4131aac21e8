#include "calibration/traces/inflated_file.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/untrusted_file.hpp"

namespace shardwright::calibration {
namespace {

// zlib's own buffer of compressed data.
constexpr unsigned kCompressedBuffer = 1U << 18U;
// The most that one call of gzread may return.
constexpr std::size_t kLongestRead = 1U << 30U;

struct CloseFile {
  void operator()(gzFile_s* file) const { gzclose(file); }
};
using OpenFile = std::unique_ptr<gzFile_s, CloseFile>;

OpenFile open_checked(const std::string& file, const std::string& expected) {
  const auto refuse = [&](const std::string& found) {
    throw InputError(file, {{"", found, expected}});
  };
  const std::string kind = kind_unless_regular(file);
  if (!kind.empty()) refuse(kind);
  OpenFile opened(gzopen(file.c_str(), "rb"));
  if (!opened) refuse(errno == 0 ? "no memory to read it" : std::strerror(errno));
  std::error_code ignored;
  if (std::filesystem::file_size(file, ignored) == 0 && !ignored) refuse("an empty file");
  gzbuffer(opened.get(), kCompressedBuffer);
  return opened;
}

}  // namespace

ByteSource open_inflated(const std::string& file, const std::string& expected,
                         const ReadingWatch& watch) {
  const std::shared_ptr<gzFile_s> opened = open_checked(file, expected);
  return [opened, file, progress = ReadBytes(watch)](char* to,
                                                     std::size_t most) mutable -> std::size_t {
    progress.stop_if_asked();
    progress.reached(static_cast<std::uintmax_t>(std::max<z_off_t>(0, gzoffset(opened.get()))));
    const int read = gzread(opened.get(), to, static_cast<unsigned>(std::min(most, kLongestRead)));
    int status = Z_OK;
    const char* reason = gzerror(opened.get(), &status);
    if (read >= 0 && (status == Z_OK || status == Z_STREAM_END))
      return static_cast<std::size_t>(read);
    // zlib reports an end within the data once that it has handed out what there is.
    if (read > 0 && status == Z_BUF_ERROR) return static_cast<std::size_t>(read);
    throw InputError(
        file, {{"byte " + std::to_string(gzoffset(opened.get())) + " of the compressed data",
                status == Z_BUF_ERROR ? "the end of the file" : reason, "a complete gzip file"}});
  };
}

void for_each_line(const ByteSource& bytes, const std::string& source, const std::string& expected,
                   const std::function<void(const std::string& line, std::size_t number)>& read) {
  constexpr std::size_t kLongestLine = 1U << 20U;
  std::string chunk(1U << 16U, '\0'), line;
  std::size_t number = 1;
  while (const std::size_t count = bytes(chunk.data(), chunk.size())) {
    for (const char c : std::string_view(chunk.data(), count)) {
      if (c != '\n' && c != '\r') {
        line += c;
        if (line.size() > kLongestLine)
          throw InputError(
              source, {{fmt::format("line {}", number), "a line of more than 1 MiB", expected}});
        continue;
      }
      read(line, number);
      line.clear();
      if (c == '\n') ++number;
    }
  }
  read(line, number);
}

}  // namespace shardwright::calibration
