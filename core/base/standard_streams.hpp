// The standard streams of a program, whatever its caller has made of them.
#pragma once

#include <string_view>

namespace shardwright {

// Prepares the standard streams before anything is opened. A stream that the caller closed would
// lend its number to the next file that is opened, and printed text would end up in there; writing
// to a pipe whose reader is gone would end the program (SIGPIPE) where it is to be an error like
// any other.
void prepare_standard_streams();

// Writes a message to standard error, and a line feed behind. One that cannot be written (a full
// disk, a terminal that is gone) is dropped: nobody reads it, and what the program does and its
// exit status do not depend on it.
void print_message(std::string_view message);

// Writes without a line feed: the beginning of a line, or one that is drawn again and again.
void write_to_stderr(std::string_view text);

}  // namespace shardwright
