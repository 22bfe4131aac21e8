#include "executor/comm/socket.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "core/base/standard_streams.hpp"
#include "executor/comm/communicator.hpp"

namespace shardwright::executor {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses resolve(const std::string& address, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int status = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (status != 0) {
    throw CommunicationError(
        fmt::format("the address \"{}\" is unknown: {}", address, gai_strerror(status)));
  }
  return Addresses(found);
}

std::string numeric_address(const sockaddr_storage& address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, text.data(), text.size(), nullptr,
              0, NI_NUMERICHOST);
  return text.data();
}

using SteadyClock = std::chrono::steady_clock;

// A peer must have sent its whole greeting within this time.
constexpr std::chrono::seconds kGreeting{10};
constexpr std::size_t kMaxPeers = 256;
// The interval at which expired peers are disconnected.
constexpr int kPollMilliseconds = 200;

}  // namespace

Socket::~Socket() {
  if (is_open()) ::close(descriptor_);
}

Socket listen_at(const std::string& address, std::uint16_t port) {
  const Addresses found = resolve(address, port);
  Socket socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (!socket.is_open() || bind(socket.descriptor(), found->ai_addr, found->ai_addrlen) != 0 ||
      listen(socket.descriptor(), SOMAXCONN) != 0) {
    throw CommunicationError(
        fmt::format("cannot listen at {}:{}: {}", address, port, std::strerror(errno)));
  }
  return socket;
}

std::uint16_t port_of(const Socket& socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&bound), &size);
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                           : reinterpret_cast<sockaddr_in&>(bound).sin_port);
}

Socket connect_to(const std::string& address, std::uint16_t port,
                  std::chrono::milliseconds timeout) {
  const Addresses found = resolve(address, port);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    Socket socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int yes = 1;
    setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (connect(socket.descriptor(), found->ai_addr, found->ai_addrlen) == 0) return socket;
    const std::string why = std::strerror(errno);
    if (std::chrono::steady_clock::now() > deadline)
      throw CommunicationError(fmt::format("no process answers at {}:{}: {}", address, port, why));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

std::string own_address_of(const Socket& socket) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&own), &size);
  return numeric_address(own, size);
}

bool send_all(int socket, const void* data, std::size_t bytes) {
  const auto* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(socket, next, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    next += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, void* data, std::size_t bytes) {
  auto* next = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = ::recv(socket, next, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    next += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

void set_receive_timeout(int socket, std::chrono::milliseconds time) {
  const timeval limit{time.count() / 1000, time.count() % 1000 * 1000};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

bool equal_secrets(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown host";
}

std::string new_token() {
  std::array<unsigned char, 16> bits{};
  if (getrandom(bits.data(), bits.size(), 0) != static_cast<ssize_t>(bits.size()))
    throw CommunicationError("the system has no random numbers");
  std::string token;
  for (const unsigned char byte : bits) token += fmt::format("{:02x}", byte);
  return token;
}

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

void UnauthenticatedPeers::accept(const Socket& listener, const std::string& challenge) {
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  Socket socket(
      accept4(listener.descriptor(), reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC));
  if (!socket.is_open()) {
    if (errno == EMFILE || errno == ENFILE) {
      static std::once_flag warned;
      std::call_once(warned, [] {
        print_message(
            fmt::format("ranks that connect have to wait: {} (ulimit -n)", std::strerror(EMFILE)));
      });
    }
    // Trying again at once would spin, for instance if too many files are open.
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return;
  }
  // The buffer of a new connection has room for it.
  if (!challenge.empty() && !send_all(socket.descriptor(), challenge.data(), challenge.size()))
    return;
  if (peers_.size() == kMaxPeers) make_room();
  peers_.push_back({std::move(socket), numeric_address(from, size), challenge, "",
                    SteadyClock::now() + kGreeting});
}

void UnauthenticatedPeers::make_room() {
  std::map<std::string, std::size_t> peers_of;
  for (const UnauthenticatedPeer& peer : peers_) ++peers_of[peer.address];
  const auto most =
      std::max_element(peers_of.begin(), peers_of.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  peers_.erase(std::find_if(peers_.begin(), peers_.end(), [&](const UnauthenticatedPeer& peer) {
    return peer.address == most->first;
  }));
}

bool UnauthenticatedPeers::read_greeting(UnauthenticatedPeer& peer) const {
  std::string& received = peer.received;
  std::array<char, 256> bytes{};
  const std::size_t missing = greeting_bytes_ - received.size();
  const ssize_t got =
      recv(peer.socket.descriptor(), bytes.data(), std::min(missing, bytes.size()), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) return true;
  received.append(bytes.data(), static_cast<std::size_t>(got));
  if (received.size() < greeting_bytes_) return false;
  greeted_(std::move(peer.socket), peer.challenge, received);
  return true;
}

}  // namespace shardwright::executor
