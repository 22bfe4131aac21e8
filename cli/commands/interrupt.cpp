#include "cli/commands/interrupt.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>

#include "core/base/error.hpp"

namespace shardwright::cli {
namespace {

constexpr char kInterrupted = 'i', kFinished = 'f';

// The ends of the pipe. They are global, because a signal handler reaches nothing else.
std::atomic<int> write_end{-1};
int read_end = -1;
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void on_interrupt(int) {
  const int saved = errno;
  [[maybe_unused]] const ssize_t ignored = write(write_end.load(), &kInterrupted, 1);
  errno = saved;
}

// SIGTERM is what `timeout`, Slurm's time limit and Kubernetes send.
void set_handlers(void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

char read_message() {
  char message = kFinished;
  while (read(read_end, &message, 1) < 0 && errno == EINTR) {
  }
  return message;
}

}  // namespace

InterruptWatch::InterruptWatch() : host_(current_embedding()) {
  if (host_ != nullptr) return;
  std::array<int, 2> ends{};
  SHARDWRIGHT_CHECK(write_end.load() < 0, "one InterruptWatch at a time");
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw RuntimeFailure("no pipe can be opened");
  read_end = ends[0];
  write_end = ends[1];
  watcher_ = std::thread([this] {
    if (read_message() == kInterrupted) source_.request_stop();
  });
  set_handlers(on_interrupt, SA_RESETHAND | SA_RESTART);
}

InterruptWatch::~InterruptWatch() {
  if (host_ != nullptr) return;
  set_handlers(SIG_DFL, 0);
  [[maybe_unused]] const ssize_t ignored = write(write_end.load(), &kFinished, 1);
  watcher_.join();
  close(read_end);
  close(write_end.exchange(-1));
}

}  // namespace shardwright::cli
