#include "core/base/distinct_names.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace shardwright {
namespace {

namespace fs = std::filesystem;

// Returns the parts of the path from the root, without "." and "..".
std::vector<fs::path> parts_of(const std::string& path) {
  // If the current folder is unknown, a relative path stays as it is.
  std::error_code unknown;
  fs::path whole = fs::absolute(path, unknown);
  if (unknown) whole = path;
  std::vector<fs::path> parts;
  for (const fs::path& part : whole.lexically_normal())
    if (!part.empty()) parts.push_back(part);  // a slash at the end gives an empty part
  return parts;
}

bool ends_alike(const std::vector<fs::path>& a, const std::vector<fs::path>& b, std::size_t count) {
  const auto parts = static_cast<std::ptrdiff_t>(count);
  return a.size() >= count && b.size() >= count &&
         std::equal(a.end() - parts, a.end(), b.end() - parts);
}

std::string end_of(const std::vector<fs::path>& parts, std::size_t count) {
  fs::path end;
  for (std::size_t i = parts.size() - count; i < parts.size(); ++i) end /= parts[i];
  return end.string();
}

}  // namespace

std::vector<std::string> distinct_names(const std::vector<std::string>& paths) {
  std::vector<std::vector<fs::path>> all;
  for (const std::string& path : paths) all.push_back(parts_of(path));
  std::vector<std::string> names;
  for (const std::vector<fs::path>& parts : all) {
    std::size_t count = std::min<std::size_t>(1, parts.size());
    const auto is_shared = [&] {
      return std::any_of(all.begin(), all.end(), [&](const std::vector<fs::path>& other) {
        return other != parts && ends_alike(parts, other, count);
      });
    };
    while (count < parts.size() && is_shared()) ++count;
    names.push_back(end_of(parts, count));
  }
  return names;
}

}  // namespace shardwright
