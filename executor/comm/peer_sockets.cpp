#include "executor/comm/peer_sockets.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <sstream>
#include <vector>

#include "executor/comm/communicator.hpp"

namespace shardwright::executor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kSecretBytes = 32;  // of new_token
// Until a stranger must have shown a secret, and how many may wait for that at a time.
constexpr std::chrono::seconds kGreeting{10};
constexpr std::size_t kMostStrangers = 256;
constexpr int kLookMilliseconds = 200;  // between looks at the strangers' time

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
  std::list<Stranger> strangers;
  while (true) {
    std::vector<pollfd> watched = {{woken_.descriptor(), POLLIN, 0},
                                   {socket_.descriptor(), POLLIN, 0}};
    for (const Stranger& stranger : strangers)
      watched.push_back({stranger.socket.descriptor(), POLLIN, 0});
    poll(watched.data(), watched.size(), strangers.empty() ? -1 : kLookMilliseconds);
    if (watched[0].revents != 0) return;
    auto seen = watched.begin() + 2;
    for (auto stranger = strangers.begin(); stranger != strangers.end(); ++seen) {
      const bool spoke = seen->revents != 0 && hear(*stranger);
      const auto next = std::next(stranger);
      if (spoke || Clock::now() > stranger->until) strangers.erase(stranger);
      stranger = next;
    }
    if (watched[1].revents != 0) accept_one(strangers);
  }
}

void PeerListener::accept_one(std::list<Stranger>& strangers) {
  Socket socket(accept4(socket_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.is_open()) {
    // Too many open files, for instance: not at once again.
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return;
  }
  if (strangers.size() == kMostStrangers) strangers.pop_front();
  strangers.push_back({std::move(socket), "", Clock::now() + kGreeting});
}

bool PeerListener::hear(Stranger& stranger) {
  std::array<char, kSecretBytes> bytes{};
  const ssize_t got = recv(stranger.socket.descriptor(), bytes.data(),
                           kSecretBytes - stranger.shown.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) return true;
  stranger.shown.append(bytes.data(), static_cast<std::size_t>(got));
  if (stranger.shown.size() < kSecretBytes) return false;
  const std::lock_guard lock(mutex_);
  for (auto& [shown, guest] : guests_) {
    if (guest.socket.is_open() || !equal_secrets(shown, stranger.shown)) continue;
    if (!send_all(stranger.socket.descriptor(), guest.answer.data(), kSecretBytes)) return true;
    guest.socket = std::move(stranger.socket);
    came_.notify_all();
  }
  return true;
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
