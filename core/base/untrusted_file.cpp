#include "core/base/untrusted_file.hpp"

#include <fstream>
#include <system_error>

namespace shardwright {

LineRead read_bounded_line(std::istream& stream, std::size_t longest, std::string& line) {
  line.clear();
  constexpr auto kEnd = std::char_traits<char>::eof();
  std::streambuf& buffer = *stream.rdbuf();
  for (auto c = buffer.sbumpc(); c != kEnd; c = buffer.sbumpc()) {
    if (c == '\n') return LineRead::Whole;
    line += std::char_traits<char>::to_char_type(c);
    if (line.size() > longest) return LineRead::TooLong;
  }
  return line.empty() ? LineRead::End : LineRead::Whole;
}

bool ends_with_line_feed(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  if (stream.tellg() <= 0) return true;
  stream.seekg(-1, std::ios::end);
  return stream.get() == '\n';
}

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
