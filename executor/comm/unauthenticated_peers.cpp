#include "executor/comm/unauthenticated_peers.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>
#include <utility>

namespace shardwright::executor {
namespace {

using SteadyClock = std::chrono::steady_clock;

// A peer must have sent its whole greeting within this time.
constexpr std::chrono::seconds kGreeting{10};
constexpr std::size_t kMaxPeers = 256;
// How often expired peers are looked for.
constexpr int kPollMilliseconds = 200;

}  // namespace

UnauthenticatedPeers::UnauthenticatedPeers(Length length, Greeted greeted)
    : length_(std::move(length)), greeted_(std::move(greeted)) {}

std::vector<pollfd> UnauthenticatedPeers::wait(std::vector<pollfd> others) {
  std::vector<pollfd> watched = std::move(others);
  const std::size_t first = watched.size();
  for (const UnauthenticatedPeer& peer : peers_)
    watched.push_back({peer.socket.descriptor(), POLLIN, 0});
  poll(watched.data(), watched.size(), peers_.empty() ? -1 : kPollMilliseconds);
  std::size_t seen = first;
  peers_.remove_if([&](UnauthenticatedPeer& peer) {
    const bool spoke = watched[seen++].revents != 0;
    return (spoke && read_greeting(peer)) || SteadyClock::now() > peer.until;
  });
  watched.resize(first);
  return watched;
}

void UnauthenticatedPeers::accept(const Socket& listener) {
  Socket socket(accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.is_open()) {
    // Trying again at once would spin, for instance if too many files are open.
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return;
  }
  if (peers_.size() == kMaxPeers) peers_.pop_front();
  peers_.push_back({std::move(socket), "", SteadyClock::now() + kGreeting});
}

bool UnauthenticatedPeers::read_greeting(UnauthenticatedPeer& peer) const {
  std::string& received = peer.received;
  std::array<char, 256> bytes{};
  const std::size_t missing = length_(received).value_or(received.size()) - received.size();
  const ssize_t got =
      recv(peer.socket.descriptor(), bytes.data(), std::min(missing, bytes.size()), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) return true;
  received.append(bytes.data(), static_cast<std::size_t>(got));
  const std::optional<std::size_t> whole = length_(received);
  if (!whole) return true;
  if (received.size() < *whole) return false;
  greeted_(std::move(peer.socket), received);
  return true;
}

}  // namespace shardwright::executor
