#include "executor/comm/tcp_store.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "executor/comm/communicator.hpp"

namespace shardwright::executor {
namespace {

// Of a key, a value or a token: addresses of a few hundred bytes travel here.
constexpr std::uint32_t kMostBytes = 1U << 20U;
constexpr std::size_t kMostTokenBytes = 256;
// Until a client must have sent its token.
constexpr std::chrono::seconds kGreeting{10};
// The server waits so long for a key before it says that it is missing.
constexpr std::chrono::milliseconds kServersPause{100};

constexpr char kSet = 'S', kGet = 'G', kFound = 'F', kMissing = 'M';

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

bool send_text(int socket, const std::string& text) {
  const std::uint32_t bytes = htonl(static_cast<std::uint32_t>(text.size()));
  return send_all(socket, &bytes, sizeof bytes) && send_all(socket, text.data(), text.size());
}

bool receive_text(int socket, std::string& text, std::size_t most) {
  std::uint32_t bytes = 0;
  if (!receive_all(socket, &bytes, sizeof bytes)) return false;
  bytes = ntohl(bytes);
  if (bytes > most) return false;
  text.resize(bytes);
  return receive_all(socket, text.data(), bytes);
}

// Takes the same time wherever two texts of one length differ.
bool equal_secrets(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

// 0: none.
void set_receive_timeout(int socket, std::chrono::milliseconds time) {
  const timeval limit{time.count() / 1000, time.count() % 1000 * 1000};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

int listen_at(const std::string& address, std::uint16_t port) {
  const Addresses found = resolve(address, port);
  const int socket = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (socket < 0 || bind(socket, found->ai_addr, found->ai_addrlen) != 0 ||
      listen(socket, SOMAXCONN) != 0) {
    const std::string why = std::strerror(errno);
    if (socket >= 0) close(socket);
    throw CommunicationError(fmt::format("cannot listen at {}:{}: {}", address, port, why));
  }
  return socket;
}

std::uint16_t port_of(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size);
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                           : reinterpret_cast<sockaddr_in&>(bound).sin_port);
}

}  // namespace

std::string new_token() {
  std::array<unsigned char, 16> bits{};
  if (getrandom(bits.data(), bits.size(), 0) != static_cast<ssize_t>(bits.size()))
    throw CommunicationError("the system gives no random numbers");
  std::string token;
  for (const unsigned char byte : bits) token += fmt::format("{:02x}", byte);
  return token;
}

TcpStoreServer::TcpStoreServer(const std::string& address, std::uint16_t port, std::string token)
    : token_(std::move(token)), listener_(listen_at(address, port)), port_(port_of(listener_)) {
  acceptor_ = std::thread([this] { accept_clients(); });
}

TcpStoreServer::~TcpStoreServer() {
  closing_ = true;
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  close(listener_);
  {
    const std::lock_guard lock(mutex_);
    for (const int client : clients_) shutdown(client, SHUT_RDWR);
  }
  for (std::thread& server : servers_) server.join();
}

void TcpStoreServer::accept_clients() {
  while (!closing_) {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    const std::lock_guard lock(mutex_);
    clients_.push_back(client);
    servers_.emplace_back([this, client] { serve(client); });
  }
}

void TcpStoreServer::serve(int client) {
  set_receive_timeout(client, kGreeting);
  std::string token;
  if (receive_text(client, token, kMostTokenBytes) && equal_secrets(token, token_)) {
    set_receive_timeout(client, std::chrono::milliseconds(0));
    char request = 0;
    std::string key, value;
    while (receive_all(client, &request, 1) && receive_text(client, key, kMostBytes)) {
      if (request == kSet) {
        if (!receive_text(client, value, kMostBytes)) break;
        table_.set(key, value);
        continue;
      }
      // The client asks again until its own time is up.
      try {
        value = table_.get(key, kServersPause);
      } catch (const CommunicationError&) {
        if (!send_all(client, &kMissing, 1)) break;
        continue;
      }
      if (!send_all(client, &kFound, 1) || !send_text(client, value)) break;
    }
  }
  const std::lock_guard lock(mutex_);
  clients_.remove(client);
  close(client);
}

TcpStore::TcpStore(const std::string& address, std::uint16_t port, const std::string& token,
                   std::chrono::milliseconds timeout) {
  const Addresses found = resolve(address, port);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    socket_ = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(socket_, found->ai_addr, found->ai_addrlen) == 0) break;
    const std::string why = std::strerror(errno);
    close(socket_);
    if (std::chrono::steady_clock::now() > deadline) {
      throw CommunicationError(fmt::format("nobody answers at {}:{}: {}", address, port, why));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const int yes = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  set_receive_timeout(socket_, timeout + kServersPause);
  send_text(socket_, token);
}

TcpStore::~TcpStore() {
  close(socket_);
}

void TcpStore::set(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  if (!send_all(socket_, &kSet, 1) || !send_text(socket_, key) || !send_text(socket_, value))
    throw CommunicationError("the rendezvous went away");
}

std::string TcpStore::get(const std::string& key, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const std::lock_guard lock(mutex_);
  while (true) {
    char answer = 0;
    if (!send_all(socket_, &kGet, 1) || !send_text(socket_, key) ||
        !receive_all(socket_, &answer, 1)) {
      throw CommunicationError(
          "the rendezvous refuses this rank (another token?), does not answer, or went away");
    }
    std::string value;
    if (answer == kFound && receive_text(socket_, value, kMostBytes)) return value;
    if (std::chrono::steady_clock::now() > deadline)
      throw CommunicationError("nobody set \"" + key + "\" in time");
  }
}

std::string TcpStore::own_address() const {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  std::array<char, NI_MAXHOST> text{};
  getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &size);
  getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text.data(), text.size(), nullptr, 0,
              NI_NUMERICHOST);
  return text.data();
}

}  // namespace shardwright::executor
