// The standard streams of a program, whatever its caller has made of them.
#pragma once

#include <string>
#include <string_view>

namespace shardwright {

// Prepares the standard streams before anything is opened. A stream that the caller closed would
// lend its number to the next file that is opened, and printed text would end up in there. Writing
// to a pipe whose reader is gone, or beyond the limit on the size of a file, would end the program
// (SIGPIPE, SIGXFSZ); afterwards it is an error like any other.
void prepare_standard_streams();

// Writes a message and a line feed to standard error. A message that cannot be written (a full
// disk, a terminal that is gone) is dropped, and the exit status of the program does not depend on
// it.
void print_message(std::string_view message);

// Writes without a line feed: the beginning of a line, or one that is drawn again and again.
void write_to_stderr(std::string_view text);

// Keeps what a thread would print, for a program that uses Shardwright as a library, while the
// object exists.
class StreamCapture {
 public:
  StreamCapture();
  StreamCapture(const StreamCapture&) = delete;
  StreamCapture& operator=(const StreamCapture&) = delete;
  ~StreamCapture();

  // The capture of this thread, or nullptr.
  static StreamCapture* current();

  std::string output;
  std::string messages;
};

}  // namespace shardwright
