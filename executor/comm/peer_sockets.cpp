#include "executor/comm/peer_sockets.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <sstream>

#include "executor/comm/communicator.hpp"

namespace shardwright::executor {
namespace {

// The length of new_token().
constexpr std::size_t kSecretBytes = 32;

struct Invitation {
  std::string address;
  std::uint16_t port = 0;
  std::string client_secret, server_secret;
};

std::string invitation_text(const Invitation& invitation) {
  return fmt::format("{} {} {} {}", invitation.address, invitation.port, invitation.client_secret,
                     invitation.server_secret);
}

Invitation read_invitation(const std::string& text) {
  Invitation invitation;
  std::istringstream stream(text);
  if (stream >> invitation.address >> invitation.port >> invitation.client_secret >>
      invitation.server_secret)
    return invitation;
  throw CommunicationError("not an invitation: \"" + text + "\"");
}

}  // namespace

PeerListener::PeerListener(const std::string& address)
    : address_(address), socket_(listen_at(address, 0)), port_(port_of(socket_)) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw CommunicationError("cannot create a socket");
  wake_ = Socket(ends[0]);
  woken_ = Socket(ends[1]);
  thread_ = std::thread([this] { serve(); });
}

PeerListener::~PeerListener() {
  send_all(wake_.descriptor(), "!", 1);
  thread_.join();
}

std::string PeerListener::invite() {
  Invitation invitation{address_, port_, new_token(), new_token()};
  const std::lock_guard lock(mutex_);
  invited_[invitation.client_secret].server_secret = invitation.server_secret;
  return invitation_text(invitation);
}

Socket PeerListener::await(const std::string& invitation, std::chrono::milliseconds timeout) {
  const std::string client_secret = read_invitation(invitation).client_secret;
  std::unique_lock lock(mutex_);
  InvitedPeer& peer = invited_.at(client_secret);
  const bool connected = connected_.wait_for(lock, timeout, [&] { return peer.socket.is_open(); });
  Socket socket = std::move(peer.socket);
  invited_.erase(client_secret);
  if (!connected) throw CommunicationError("a peer did not connect in time");
  return socket;
}

void PeerListener::serve() {
  UnauthenticatedPeers peers(
      kSecretBytes, [this](Socket socket, const std::string&, const std::string& client_secret) {
        receive(std::move(socket), client_secret);
      });
  while (true) {
    const auto seen =
        peers.wait({{woken_.descriptor(), POLLIN, 0}, {socket_.descriptor(), POLLIN, 0}});
    if (seen[0].revents != 0) return;
    if (seen[1].revents != 0) peers.accept(socket_);
  }
}

void PeerListener::receive(Socket socket, const std::string& client_secret) {
  const std::lock_guard lock(mutex_);
  for (auto& [secret, peer] : invited_) {
    if (peer.socket.is_open() || !equal_secrets(secret, client_secret)) continue;
    if (!send_all(socket.descriptor(), peer.server_secret.data(), kSecretBytes)) return;
    peer.socket = std::move(socket);
    connected_.notify_all();
    return;
  }
}

Socket connect_to_inviter(const std::string& invitation, std::chrono::milliseconds timeout) {
  const Invitation to = read_invitation(invitation);
  Socket socket = connect_to(to.address, to.port, timeout);
  const int descriptor = socket.descriptor();
  set_receive_timeout(descriptor, timeout);
  std::string server_secret(kSecretBytes, '\0');
  if (!send_all(descriptor, to.client_secret.data(), to.client_secret.size()) ||
      !receive_all(descriptor, server_secret.data(), server_secret.size()) ||
      !equal_secrets(server_secret, to.server_secret)) {
    throw CommunicationError(
        fmt::format("the process at {}:{} is not a rank of this run", to.address, to.port));
  }
  set_receive_timeout(descriptor, std::chrono::milliseconds(0));
  return socket;
}

}  // namespace shardwright::executor
