#include "core/base/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "core/base/error.hpp"

namespace shardwright {
namespace {

thread_local StreamCapture* capture = nullptr;

}  // namespace

StreamCapture::StreamCapture() {
  SHARDWRIGHT_CHECK(capture == nullptr, "one StreamCapture at a time on a thread");
  capture = this;
}

StreamCapture::~StreamCapture() {
  capture = nullptr;
}

StreamCapture* StreamCapture::current() {
  return capture;
}

void prepare_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1) continue;
    // Read-only, so that printing a result to it fails and is noticed.
    [[maybe_unused]] const int opened = open("/dev/null", O_RDONLY);
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void print_message(std::string_view message) {
  // The line goes out in one piece, since ranks share the stream.
  write_to_stderr(std::string(message) + '\n');
}

void write_to_stderr(std::string_view text) {
  if (capture != nullptr) {
    capture->messages += text;
    return;
  }
  [[maybe_unused]] const std::size_t ignored = std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace shardwright
