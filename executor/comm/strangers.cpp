#include "executor/comm/strangers.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>
#include <utility>

namespace shardwright::executor {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Until a stranger must have said a whole greeting, and how many may take their time at once.
constexpr std::chrono::seconds kGreeting{10};
constexpr std::size_t kMostStrangers = 256;
constexpr int kLookMilliseconds = 200;  // between looks at the strangers' time

}  // namespace

Strangers::Strangers(Length length, Meet meet)
    : length_(std::move(length)), meet_(std::move(meet)) {}

std::vector<pollfd> Strangers::wait(std::vector<pollfd> others) {
  std::vector<pollfd> watched = std::move(others);
  const std::size_t first = watched.size();
  for (const Stranger& stranger : strangers_)
    watched.push_back({stranger.socket.descriptor(), POLLIN, 0});
  poll(watched.data(), watched.size(), strangers_.empty() ? -1 : kLookMilliseconds);
  std::size_t seen = first;
  strangers_.remove_if([&](Stranger& stranger) {
    const bool spoke = watched[seen++].revents != 0;
    return (spoke && hear(stranger)) || SteadyClock::now() > stranger.until;
  });
  watched.resize(first);
  return watched;
}

void Strangers::accept(const Socket& listener) {
  Socket socket(accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.is_open()) {
    // Too many open files, for instance: not at once again.
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return;
  }
  if (strangers_.size() == kMostStrangers) strangers_.pop_front();
  strangers_.push_back({std::move(socket), "", SteadyClock::now() + kGreeting});
}

bool Strangers::hear(Stranger& stranger) const {
  std::string& said = stranger.said;
  std::array<char, 256> bytes{};
  const std::size_t missing = length_(said).value_or(said.size()) - said.size();
  const ssize_t got = recv(stranger.socket.descriptor(), bytes.data(),
                           std::min(missing, bytes.size()), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) return true;
  said.append(bytes.data(), static_cast<std::size_t>(got));
  const std::optional<std::size_t> whole = length_(said);
  if (!whole) return true;
  if (said.size() < *whole) return false;
  meet_(std::move(stranger.socket), said);
  return true;
}

}  // namespace shardwright::executor
