#include "executor/comm/tcp_store.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <system_error>
#include <utility>

#include "executor/comm/communicator.hpp"

namespace shardwright::executor {
namespace {

// Limits on the length of a key or value, and of a token.
constexpr std::uint32_t kMaxBytes = 1U << 20U;
constexpr std::size_t kMaxTokenBytes = 256;
// Each text is preceded by its length.
constexpr std::size_t kLengthBytes = sizeof(std::uint32_t);
// The time that the server waits for a key before it answers that it is missing.
constexpr std::chrono::milliseconds kServerWait{100};

constexpr char kSet = 'S', kGet = 'G', kFound = 'F', kMissing = 'M';

// Returns the length of a greeting (a token and its length), or nothing if the token is too long.
std::optional<std::size_t> greeting_bytes(const std::string& sent) {
  if (sent.size() < kLengthBytes) return kLengthBytes;
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, sent.data(), sizeof bytes);
  bytes = ntohl(bytes);
  return bytes <= kMaxTokenBytes ? std::optional(kLengthBytes + bytes) : std::nullopt;
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

}  // namespace

TcpStoreServer::TcpStoreServer(const std::string& address, std::uint16_t port, std::string token)
    : token_(std::move(token)), listener_(listen_at(address, port)), port_(port_of(listener_)) {
  acceptor_ = std::thread([this] { accept_clients(); });
}

TcpStoreServer::~TcpStoreServer() {
  closing_ = true;
  shutdown(listener_.descriptor(), SHUT_RDWR);
  acceptor_.join();
  for (Client& client : clients_) shutdown(client.socket.descriptor(), SHUT_RDWR);
  for (Client& client : clients_) client.thread.join();
}

void TcpStoreServer::accept_clients() {
  UnauthenticatedPeers peers(greeting_bytes, [this](Socket socket, const std::string& greeting) {
    if (equal_secrets(greeting.substr(kLengthBytes), token_)) add_client(std::move(socket));
  });
  while (!closing_) {
    const auto seen = peers.wait({{listener_.descriptor(), POLLIN, 0}});
    clients_.remove_if([](Client& client) {
      if (!client.finished) return false;
      client.thread.join();
      return true;
    });
    if (seen[0].revents != 0 && !closing_) peers.accept(listener_);
  }
}

void TcpStoreServer::add_client(Socket socket) {
  Client& client = clients_.emplace_back();
  client.socket = std::move(socket);
  try {
    client.thread = std::thread([this, &client] {
      serve(client.socket.descriptor());
      shutdown(client.socket.descriptor(), SHUT_RDWR);
      client.finished = true;
    });
  } catch (const std::system_error&) {
    // The system is out of threads: disconnect the client.
    clients_.pop_back();
  }
}

void TcpStoreServer::serve(int client) {
  char request = 0;
  std::string key, value;
  while (receive_all(client, &request, 1) && receive_text(client, key, kMaxBytes)) {
    if (request == kSet) {
      if (!receive_text(client, value, kMaxBytes)) return;
      store_.set(key, value);
      continue;
    }
    // The client asks again until its own timeout.
    try {
      value = store_.get(key, kServerWait);
    } catch (const CommunicationError&) {
      if (!send_all(client, &kMissing, 1)) return;
      continue;
    }
    if (!send_all(client, &kFound, 1) || !send_text(client, value)) return;
  }
}

TcpStore::TcpStore(const std::string& address, std::uint16_t port, const std::string& token,
                   std::chrono::milliseconds timeout)
    : socket_(connect_to(address, port, timeout)) {
  set_receive_timeout(socket_.descriptor(), timeout + kServerWait);
  send_text(socket_.descriptor(), token);
}

void TcpStore::set(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  if (!send_all(socket_.descriptor(), &kSet, 1) || !send_text(socket_.descriptor(), key) ||
      !send_text(socket_.descriptor(), value))
    throw CommunicationError("the connection to the rendezvous was lost");
}

std::string TcpStore::get(const std::string& key, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    if (const auto value = find(key)) return *value;
    if (std::chrono::steady_clock::now() > deadline)
      throw CommunicationError("timed out waiting for \"" + key + "\"");
  }
}

std::optional<std::string> TcpStore::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const int socket = socket_.descriptor();
  char answer = 0;
  std::string value;
  const bool answered = send_all(socket, &kGet, 1) && send_text(socket, key) &&
                        receive_all(socket, &answer, 1) &&
                        (answer == kMissing || receive_text(socket, value, kMaxBytes));
  if (!answered) {
    throw CommunicationError(
        "the rendezvous does not answer: it has another token, or the connection was lost");
  }
  return answer == kFound ? std::optional(value) : std::nullopt;
}

std::string TcpStore::own_address() const {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  std::array<char, NI_MAXHOST> text{};
  getsockname(socket_.descriptor(), reinterpret_cast<sockaddr*>(&own), &size);
  getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text.data(), text.size(), nullptr, 0,
              NI_NUMERICHOST);
  return text.data();
}

void LocalStore::set(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  entries_[key] = {value, std::chrono::steady_clock::now()};
  changed_.notify_all();
}

std::string LocalStore::get(const std::string& key, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  const bool there =
      changed_.wait_for(lock, timeout, [&] { return entries_.find(key) != entries_.end(); });
  if (!there) throw CommunicationError("timed out waiting for \"" + key + "\"");
  return entries_[key].value;
}

std::optional<std::string> LocalStore::find(const std::string& key) {
  const auto found = entry(key);
  return found ? std::optional(found->value) : std::nullopt;
}

std::optional<LocalStore::Entry> LocalStore::entry(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  return found == entries_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace shardwright::executor
