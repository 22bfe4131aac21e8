#include "executor/comm/peer_sockets.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <sstream>
#include <vector>

#include "executor/comm/communicator.hpp"
#include "executor/comm/unauthenticated_peers.hpp"

namespace shardwright::executor {
namespace {

constexpr std::size_t kSecretBytes = 32;  // of new_token

struct Invitation {
  std::string address;
  std::uint16_t port = 0;
  std::string shown, answer;  // secrets
};

std::string text_of(const Invitation& invitation) {
  return fmt::format("{} {} {} {}", invitation.address, invitation.port, invitation.shown,
                     invitation.answer);
}

Invitation read_invitation(const std::string& text) {
  Invitation invitation;
  std::istringstream stream(text);
  if (stream >> invitation.address >> invitation.port >> invitation.shown >> invitation.answer)
    return invitation;
  throw CommunicationError("no invitation: \"" + text + "\"");
}

}  // namespace

PeerListener::PeerListener(const std::string& address)
    : address_(address), socket_(listen_at(address, 0)), port_(port_of(socket_)) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw CommunicationError("no more sockets");
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
  guests_[invitation.shown].answer = invitation.answer;
  return text_of(invitation);
}

Socket PeerListener::await(const std::string& invitation, std::chrono::milliseconds timeout) {
  const std::string shown = read_invitation(invitation).shown;
  std::unique_lock lock(mutex_);
  Guest& guest = guests_.at(shown);
  const bool came = came_.wait_for(lock, timeout, [&] { return guest.socket.is_open(); });
  Socket socket = std::move(guest.socket);
  guests_.erase(shown);
  if (!came) throw CommunicationError("a peer did not come in time");
  return socket;
}

void PeerListener::serve() {
  UnauthenticatedPeers peers(
      [](const std::string&) { return kSecretBytes; },
      [this](Socket socket, const std::string& shown) { receive(std::move(socket), shown); });
  while (true) {
    const auto seen =
        peers.wait({{woken_.descriptor(), POLLIN, 0}, {socket_.descriptor(), POLLIN, 0}});
    if (seen[0].revents != 0) return;
    if (seen[1].revents != 0) peers.accept(socket_);
  }
}

void PeerListener::receive(Socket socket, const std::string& shown) {
  const std::lock_guard lock(mutex_);
  for (auto& [secret, guest] : guests_) {
    if (guest.socket.is_open() || !equal_secrets(secret, shown)) continue;
    if (!send_all(socket.descriptor(), guest.answer.data(), kSecretBytes)) return;
    guest.socket = std::move(socket);
    came_.notify_all();
    return;
  }
}

Socket follow(const std::string& invitation, std::chrono::milliseconds timeout) {
  const Invitation to = read_invitation(invitation);
  Socket socket = connect_to(to.address, to.port, timeout);
  const int descriptor = socket.descriptor();
  set_receive_timeout(descriptor, timeout);
  std::string answer(kSecretBytes, '\0');
  if (!send_all(descriptor, to.shown.data(), to.shown.size()) ||
      !receive_all(descriptor, answer.data(), answer.size()) || !equal_secrets(answer, to.answer)) {
    throw CommunicationError(
        fmt::format("who listens at {}:{} does not answer as a peer", to.address, to.port));
  }
  set_receive_timeout(descriptor, std::chrono::milliseconds(0));
  return socket;
}

}  // namespace shardwright::executor
