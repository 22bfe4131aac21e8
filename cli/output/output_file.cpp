#include "cli/output/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/standard_streams.hpp"

namespace shardwright::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// Returns false with errno set if not everything could be written.
bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

[[noreturn]] void fail(const std::string& file, int error) {
  throw RuntimeFailure(fmt::format("{}: cannot be written: {}", file, std::strerror(error)));
}

// A temporary file, which is removed unless it was renamed to its final name.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& target) : name_(target.string() + ".XXXXXX") {
    descriptor_ = mkstemp(name_.data());
    if (descriptor_ < 0 || fchmod(descriptor_, usual_mode()) != 0) fail(target.string(), errno);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) close(descriptor_);
    unlink(name_.c_str());
  }

  const std::string& name() const { return name_; }

  bool fill(std::string_view text) {
    return write_all(descriptor_, text) && close(std::exchange(descriptor_, -1)) == 0;
  }

  // A hard link, unlike a rename, refuses to replace what is there.
  bool move_to(const fs::path& target, bool overwrite) const {
    return overwrite ? rename(name_.c_str(), target.c_str()) == 0
                     : link(name_.c_str(), target.c_str()) == 0;
  }

 private:
  // Temporary files are private; the final file follows the umask like any other.
  static mode_t usual_mode() {
    const mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
  }

  std::string name_;
  int descriptor_ = -1;
};

bool is_special(const fs::path& file) {
  std::error_code ignored;
  const auto status = fs::status(file, ignored);
  return fs::exists(status) && !fs::is_regular_file(status);
}

bool is_same_file(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty() || is_special(a)) return false;
  if (a == "-" || b == "-") return a == b;
  std::error_code ignored;
  return fs::absolute(a, ignored).lexically_normal() == fs::absolute(b, ignored).lexically_normal();
}

void write_special(const std::string& file, std::string_view text) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) fail(file, errno);
  const bool written = write_all(descriptor, text);
  const int error = errno;
  close(descriptor);
  if (!written) fail(file, error);
}

void check_finite(const ordered_json& value, const std::string& pointer) {
  if (value.is_number_float() && !std::isfinite(value.get<double>()))
    throw RuntimeFailure(fmt::format("the result is not a number at {}", pointer));
  if (!value.is_structured()) return;
  for (const auto& [key, member] : value.items())
    check_finite(member, fmt::format("{}/{}", pointer, key));
}

}  // namespace

void write_stdout(std::string_view text) {
  if (StreamCapture* capture = StreamCapture::current()) {
    capture->output += text;
    return;
  }
  if (write_all(STDOUT_FILENO, text)) return;
  if (errno == EPIPE) throw OutputClosed();
  fail("standard output", errno);
}

void check_destination(const std::string& option, const std::string& file, bool overwrite) {
  if (file.empty() || file == "-" || is_special(file)) {
    std::error_code ignored;
    if (!fs::is_directory(file, ignored)) return;
    throw InputError(option, {{"", fmt::format("the folder \"{}\"", file), "the name of a file"}});
  }
  std::error_code ignored;
  if (fs::exists(file, ignored) && !overwrite) {
    throw InputError(option, {{"", fmt::format("the existing file \"{}\"", file),
                               "a new file (or --force, to replace it)"}});
  }
  const fs::path folder = fs::path(file).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, ignored)) {
    throw InputError(option, {{"", fmt::format("no folder \"{}\"", folder.string()),
                               "a file in a folder that exists"}});
  }
}

void check_destinations(const std::vector<Destination>& destinations, bool overwrite) {
  for (const Destination& each : destinations) check_destination(each.option, each.file, overwrite);
  for (auto second = destinations.begin(); second != destinations.end(); ++second) {
    const auto first = std::find_if(destinations.begin(), second, [&](const Destination& other) {
      return is_same_file(other.file, second->file);
    });
    if (first == second) continue;
    throw InputError(
        second->option,
        {{"",
          fmt::format("{}, which is that of {} too",
                      second->file == "-" ? "standard output" : "\"" + second->file + "\"",
                      first->option),
          "a file of its own"}});
  }
}

bool take_stdout(const std::vector<Destination>& destinations) {
  return std::any_of(destinations.begin(), destinations.end(),
                     [](const Destination& each) { return each.file == "-"; });
}

void write_file(const std::string& file_or_dash, std::string_view text, bool overwrite) {
  if (file_or_dash == "-") return write_stdout(text);
  if (is_special(file_or_dash)) return write_special(file_or_dash, text);
  TemporaryFile temporary(file_or_dash);
  if (!temporary.fill(text) || !temporary.move_to(file_or_dash, overwrite))
    fail(file_or_dash, errno);
}

void write_file(const std::string& file_or_dash, const std::function<void(std::ostream&)>& write,
                bool overwrite) {
  if (file_or_dash == "-" || is_special(file_or_dash)) {
    std::ostringstream text;
    write(text);
    return write_file(file_or_dash, text.view(), overwrite);
  }
  const TemporaryFile temporary(file_or_dash);
  std::ofstream stream(temporary.name(), std::ios::binary);
  write(stream);
  stream.close();
  if (!stream || !temporary.move_to(file_or_dash, overwrite)) fail(file_or_dash, errno);
}

std::string json_text(const ordered_json& document) {
  check_finite(document, "");
  constexpr int kIndent = 2;
  return document.dump(kIndent, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

ordered_json finite_or_null(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json();
}

}  // namespace shardwright::cli
