#include "core/base/bounded_line.hpp"

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

}  // namespace shardwright
