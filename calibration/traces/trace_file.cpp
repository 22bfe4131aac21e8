#include "calibration/traces/trace_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "calibration/traces/inflated_file.hpp"
#include "calibration/traces/kineto.hpp"
#include "calibration/traces/nsys.hpp"
#include "core/base/error.hpp"
#include "core/base/untrusted_file.hpp"
#include "core/timeline/perfetto.hpp"
#include "core/timeline/timeline.hpp"

namespace shardwright::calibration {
namespace {

constexpr const char* kExpectedFile =
    "a trace (JSON of PyTorch's profiler, SQLite of nsys export), a record of a job's ops (CSV) or "
    "the log of a training run, plain or compressed with gzip";
constexpr std::string_view kDatabaseMark("SQLite format 3\0", 16);
constexpr std::size_t kHeadLength = 4096;

// A file that is removed with the object.
class TemporaryDatabase {
 public:
  TemporaryDatabase() {
    std::string pattern = std::filesystem::temp_directory_path() / "shardwright-nsys-XXXXXX";
    descriptor_ = mkstemp(pattern.data());
    if (descriptor_ < 0) fail();
    path_ = pattern;
  }
  ~TemporaryDatabase() {
    close(descriptor_);
    unlink(path_.c_str());
  }
  TemporaryDatabase(const TemporaryDatabase&) = delete;
  TemporaryDatabase& operator=(const TemporaryDatabase&) = delete;

  const std::string& path() const { return path_; }

  void append(const char* bytes, std::size_t count) const {
    while (count > 0) {
      const ssize_t written = write(descriptor_, bytes, count);
      if (written <= 0) fail();
      bytes += written;
      count -= static_cast<std::size_t>(written);
    }
  }

 private:
  [[noreturn]] static void fail() {
    throw RuntimeFailure(std::string("a compressed database needs room for temporary files: ") +
                         std::strerror(errno));
  }

  int descriptor_ = -1;
  std::string path_;
};

// The first bytes of a source, and a source that has them again. A byte-order mark, which Excel
// writes before a table, is left out of both.
std::pair<std::string, ByteSource> with_head(ByteSource bytes, std::size_t length) {
  std::string head(length, '\0');
  std::size_t known = 0;
  for (std::size_t read = 1; read > 0 && known < length; known += read)
    read = bytes(head.data() + known, length - known);
  head.resize(known);
  if (head.starts_with("\xef\xbb\xbf")) head.erase(0, 3);
  const ByteSource again = [head, at = std::size_t{0}, bytes](char* to, std::size_t most) mutable {
    if (at == head.size()) return bytes(to, most);
    const std::size_t count = std::min(most, head.size() - at);
    std::memcpy(to, head.data() + at, count);
    at += count;
    return count;
  };
  return {head, again};
}

bool is_plain_database(const std::string& file) {
  std::string head(kDatabaseMark.size(), '\0');
  std::ifstream(file, std::ios::binary)
      .read(head.data(), static_cast<std::streamsize>(head.size()));
  return head == kDatabaseMark;
}

Trace read_compressed_database(const ByteSource& bytes, const std::string& file,
                               const ReadingWatch& watch) {
  const TemporaryDatabase database;
  std::vector<char> chunk(1U << 20U);
  while (const std::size_t read = bytes(chunk.data(), chunk.size()))
    database.append(chunk.data(), read);
  return read_nsys(database.path(), file, {nullptr, watch.stop});
}

// An object with a key in double quotes, or an array of objects: logs may begin with a bracket or
// with a dictionary of Python, too.
bool begins_as_json(std::string_view head) {
  const auto next_mark = [&head] {
    const std::size_t at = std::min(head.find_first_not_of(" \t\r\n"), head.size());
    head.remove_prefix(at);
    return head.empty() ? '\0' : head.front();
  };
  if (next_mark() == '{') {
    head.remove_prefix(1);
    return next_mark() != '\'';
  }
  if (next_mark() != '[') return false;
  head.remove_prefix(1);
  return next_mark() == '{' || next_mark() == ']';
}

bool is_utf16(std::string_view head) {
  return head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff");
}

// Refuses files that hold neither text nor a database.
void refuse_other_binary(std::string_view head, const std::string& file) {
  if (file.ends_with(".nsys-rep") || file.ends_with(".qdrep"))
    throw InputError(file, {{"", "a report of Nsight Systems before its export",
                             "the database that nsys export --type sqlite makes of it"}});
  for (const std::string_view mark : {"\xfd"
                                      "7zXZ",
                                      "\x28\xb5\x2f\xfd", "BZh", "PK\x03\x04"})
    if (head.starts_with(mark))
      throw InputError(file,
                       {{"", "a compressed file of another kind", "one of gzip, or a plain file"}});
  if (!head.starts_with(kDatabaseMark) && head.find('\0') != std::string_view::npos)
    throw InputError(file, {{"", "binary data", kExpectedFile}});
}

// Keys that configurations of DeepSpeed have and traces do not.
bool configures_deepspeed(std::string_view head) {
  const auto has = [&](const char* key) { return head.find(key) != std::string_view::npos; };
  return !has("\"traceEvents\"") &&
         (has("\"train_batch_size\"") || has("\"train_micro_batch_size_per_gpu\"") ||
          has("\"zero_optimization\""));
}

// Refuses the timelines that this program writes: in our form, and for Perfetto.
void refuse_own_timeline(std::string_view head, const std::string& file) {
  std::string text(head);
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; });
  const auto says = [&](const char* key, std::string_view value) {
    return text.find(fmt::format(R"("{}":"{}")", key, value)) != std::string::npos;
  };
  if (!says("schema", kTimelineSchema) && !says("writer", kTraceWriter)) return;
  const bool predicted = says("origin", name_of(TimelineOrigin::Predicted));
  throw InputError(
      file, {{"",
              predicted ? "a timeline that Shardwright predicted, not measured"
                        : "a timeline of Shardwright, which the window shows",
              "a recording of a profiler: JSON of PyTorch's profiler or SQLite of nsys export"}});
}

// The first object of a text, if it ends within it; else nothing.
std::string_view first_object(std::string_view text) {
  const std::size_t begin = std::min(text.find('{'), text.size());
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text[i] == '"') in_string = !in_string;
    if (text[i] == '\\') ++i;
    if (in_string || i >= text.size()) continue;
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && --depth == 0) return text.substr(begin, i + 1 - begin);
  }
  return "";
}

// Refuses an array of objects that are no events: each event has a phase.
void refuse_other_array(std::string_view head, const std::string& file) {
  const std::size_t first = head.find_first_of("[{");
  if (first == std::string_view::npos || head[first] != '[') return;
  const std::string_view object = first_object(head);
  if (object.empty() || object.find("\"ph\"") != std::string_view::npos) return;
  throw InputError(file, {{"/0", "an object without \"ph\"",
                           "an event of a trace, as PyTorch's profiler writes it"}});
}

}  // namespace

Recording read_recording(const std::string& file, const ReadingWatch& watch) {
  if (kind_unless_regular(file).empty() && is_plain_database(file))
    return read_nsys(file, file, watch);
  const auto [head, bytes] = with_head(open_inflated(file, kExpectedFile, watch), kHeadLength);
  if (is_utf16(head))
    throw InputError(file, {{"", "text in UTF-16",
                             "UTF-8, in which PowerShell writes with Out-File -Encoding utf8"}});
  refuse_other_binary(head, file);
  if (begins_as_json(head) && configures_deepspeed(head))
    throw InputError(file,
                     {{"", "a configuration of DeepSpeed, which tells no model",
                       "the log of its run, a trace, or a script that launches Megatron-LM"}});
  if (begins_as_json(head)) {
    refuse_own_timeline(head, file);
    refuse_other_array(head, file);
    return read_kineto(bytes, file);
  }
  if (is_job_header(head.substr(0, head.find_first_of("\r\n"))))
    return read_job_record(bytes, file);
  if (!head.starts_with(kDatabaseMark)) return read_training_log(bytes, file);
  return read_compressed_database(bytes, file, watch);
}

}  // namespace shardwright::calibration
