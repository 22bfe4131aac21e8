#include "executor/comm/tcp_store.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "executor/comm/communicator.hpp"
#include "executor/comm/unauthenticated_peers.hpp"

namespace shardwright::executor {
namespace {

// Of a key, a value or a token: addresses of a few hundred bytes travel here.
constexpr std::uint32_t kMostBytes = 1U << 20U;
constexpr std::size_t kMostTokenBytes = 256;
constexpr std::size_t kLengthBytes = sizeof(std::uint32_t);  // before a text
// The server waits so long for a key before it says that it is missing.
constexpr std::chrono::milliseconds kServersPause{100};

constexpr char kSet = 'S', kGet = 'G', kFound = 'F', kMissing = 'M';

// Of length and token; nothing if the token is too long for one.
std::optional<std::size_t> bytes_of_greeting(const std::string& sent) {
  if (sent.size() < kLengthBytes) return kLengthBytes;
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, sent.data(), sizeof bytes);
  bytes = ntohl(bytes);
  return bytes <= kMostTokenBytes ? std::optional(kLengthBytes + bytes) : std::nullopt;
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
  UnauthenticatedPeers peers(bytes_of_greeting, [this](Socket socket, const std::string& greeting) {
    if (equal_secrets(greeting.substr(kLengthBytes), token_)) let_in(std::move(socket));
  });
  while (!closing_) {
    const auto seen = peers.wait({{listener_.descriptor(), POLLIN, 0}});
    clients_.remove_if([](Client& client) {
      if (!client.gone) return false;
      client.thread.join();
      return true;
    });
    if (seen[0].revents != 0 && !closing_) peers.accept(listener_);
  }
}

void TcpStoreServer::let_in(Socket socket) {
  Client& client = clients_.emplace_back();
  client.socket = std::move(socket);
  try {
    client.thread = std::thread([this, &client] {
      serve(client.socket.descriptor());
      shutdown(client.socket.descriptor(), SHUT_RDWR);
      client.gone = true;
    });
  } catch (const std::system_error&) {
    clients_.pop_back();  // no more threads: hung up on
  }
}

void TcpStoreServer::serve(int client) {
  char request = 0;
  std::string key, value;
  while (receive_all(client, &request, 1) && receive_text(client, key, kMostBytes)) {
    if (request == kSet) {
      if (!receive_text(client, value, kMostBytes)) return;
      table_.set(key, value);
      continue;
    }
    // The client asks again until its own time is up.
    try {
      value = table_.get(key, kServersPause);
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
  set_receive_timeout(socket_.descriptor(), timeout + kServersPause);
  send_text(socket_.descriptor(), token);
}

void TcpStore::set(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  if (!send_all(socket_.descriptor(), &kSet, 1) || !send_text(socket_.descriptor(), key) ||
      !send_text(socket_.descriptor(), value))
    throw CommunicationError("the rendezvous went away");
}

std::string TcpStore::get(const std::string& key, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    if (const auto value = find(key)) return *value;
    if (std::chrono::steady_clock::now() > deadline)
      throw CommunicationError("nobody set \"" + key + "\" in time");
  }
}

std::optional<std::string> TcpStore::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const int socket = socket_.descriptor();
  char answer = 0;
  std::string value;
  const bool answered = send_all(socket, &kGet, 1) && send_text(socket, key) &&
                        receive_all(socket, &answer, 1) &&
                        (answer == kMissing || receive_text(socket, value, kMostBytes));
  if (!answered) {
    throw CommunicationError(
        "the rendezvous refuses this rank (another token?), does not answer, or went away");
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

}  // namespace shardwright::executor
