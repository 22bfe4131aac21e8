// Ctrl-C and SIGTERM as a stop token.
#pragma once

#include <stop_token>
#include <thread>

#include "cli/output/embedding.hpp"

namespace shardwright::cli {

// While an object exists, the first SIGINT or SIGTERM requests a stop through the token, and a
// second one kills the process as usual. At most one object may exist at a time. In an embedded
// command the stop token of the program around it takes the place of the signals.
class InterruptWatch {
 public:
  InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;
  ~InterruptWatch();

  std::stop_token token() const { return host_ != nullptr ? host_->stop : source_.get_token(); }
  bool interrupted() const { return token().stop_requested(); }

 private:
  const Embedding* host_;
  std::stop_source source_;
  // Reads the pipe that the signal handler writes to, and requests the stop.
  std::thread watcher_;
};

}  // namespace shardwright::cli
