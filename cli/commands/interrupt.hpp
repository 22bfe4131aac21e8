// Ctrl-C as a stop token.
#pragma once

#include <stop_token>
#include <thread>

namespace shardwright::cli {

// While it lives, the first SIGINT asks the token to stop and a second one kills the process as
// usual. There may be one at a time.
class InterruptWatch {
 public:
  InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;
  ~InterruptWatch();

  std::stop_token token() const { return source_.get_token(); }
  bool interrupted() const { return source_.stop_requested(); }

 private:
  std::stop_source source_;
  // A signal handler may only write to a pipe; this thread reads it and tells the others.
  std::thread watcher_;
};

}  // namespace shardwright::cli
