#include "core/base/regular_file.hpp"

#include <system_error>

namespace shardwright {

std::string kind_unless_regular(const std::filesystem::path& file) {
  std::error_code error;
  switch (std::filesystem::status(file, error).type()) {
    case std::filesystem::file_type::directory:
      return "a folder";
    case std::filesystem::file_type::fifo:
      return "a named pipe";
    case std::filesystem::file_type::character:
    case std::filesystem::file_type::block:
      return "a device";
    case std::filesystem::file_type::socket:
      return "a socket";
    default:
      return "";
  }
}

}  // namespace shardwright
