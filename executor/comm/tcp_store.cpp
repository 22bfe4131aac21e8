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
#include "executor/comm/token_proof.hpp"

namespace shardwright::executor {
namespace {

// A limit on the length of a key or value.
constexpr std::uint32_t kMaxBytes = 1U << 20U;
// The wait before a client that was disconnected tries again.
constexpr std::chrono::milliseconds kRetry{50};
// The time that the server waits for a key before it answers that it is missing.
constexpr std::chrono::milliseconds kServerWait{100};

constexpr char kSet = 'S', kGet = 'G', kFound = 'F', kMissing = 'M';
constexpr char kAccepted = 'A', kRefused = 'R';

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
  UnauthenticatedPeers peers(
      kChallengeBytes + kProofBytes,
      [this](Socket socket, const std::string& challenge, const std::string& greeting) {
        authenticate(std::move(socket), challenge, greeting);
      });
  while (!closing_) {
    const auto seen = peers.wait({{listener_.descriptor(), POLLIN, 0}});
    clients_.remove_if([](Client& client) {
      if (!client.finished) return false;
      client.thread.join();
      return true;
    });
    if (seen[0].revents != 0 && !closing_) peers.accept(listener_, new_token());
  }
}

void TcpStoreServer::authenticate(Socket socket, const std::string& challenge,
                                  const std::string& greeting) {
  const std::string of_client = greeting.substr(0, kChallengeBytes);
  const std::string proof = token_proof(token_, ProvingSide::Client, challenge, of_client);
  if (!equal_secrets(greeting.substr(kChallengeBytes), proof)) {
    send_all(socket.descriptor(), &kRefused, 1);
    return;
  }
  const std::string own = token_proof(token_, ProvingSide::Server, challenge, of_client);
  if (send_all(socket.descriptor(), &kAccepted, 1) &&
      send_all(socket.descriptor(), own.data(), own.size()))
    add_client(std::move(socket));
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

namespace {

// Proves the token to the server at the other end, and lets it prove it. Returns false if the
// connection was lost meanwhile. Throws CommunicationError.
bool agree_on_token(const Socket& socket, const std::string& token) {
  const int descriptor = socket.descriptor();
  std::string challenge(kChallengeBytes, '\0'), proof(kProofBytes, '\0');
  if (!receive_all(descriptor, challenge.data(), challenge.size())) return false;
  const std::string own = new_token();
  const std::string greeting = own + token_proof(token, ProvingSide::Client, challenge, own);
  char answer = 0;
  if (!send_all(descriptor, greeting.data(), greeting.size()) ||
      !receive_all(descriptor, &answer, 1))
    return false;
  if (answer == kRefused) throw CommunicationError("the rendezvous has another token");
  if (answer != kAccepted || !receive_all(descriptor, proof.data(), proof.size())) return false;
  if (!equal_secrets(proof, token_proof(token, ProvingSide::Server, challenge, own)))
    throw CommunicationError("the process at the rendezvous does not know the token");
  return true;
}

}  // namespace

TcpStore::TcpStore(const std::string& address, std::uint16_t port, const std::string& token,
                   std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    socket_ = connect_to(address, port, timeout);
    set_receive_timeout(socket_.descriptor(), timeout + kServerWait);
    if (agree_on_token(socket_, token)) return;
    // A server under a flood of connections may have disconnected this one.
    if (std::chrono::steady_clock::now() > deadline)
      throw CommunicationError(fmt::format("no rendezvous answers at {}:{}", address, port));
    std::this_thread::sleep_for(kRetry);
  }
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
    throw CommunicationError("the connection to the rendezvous was lost");
  }
  return answer == kFound ? std::optional(value) : std::nullopt;
}

std::string TcpStore::own_address() const {
  return own_address_of(socket_);
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
