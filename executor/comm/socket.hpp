// TCP sockets of the operating system, and the name of this host.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardwright::executor {

// Owns a file descriptor, or -1.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();

  int descriptor() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  // Returns the descriptor and gives up its ownership.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

// Listens at a numeric address or a name of this host; port 0 stands for any free port. Throws
// CommunicationError.
Socket listen_at(const std::string& address, std::uint16_t port);
std::uint16_t port_of(const Socket& socket);
// Returns the numeric address of this end of a connection.
std::string own_address_of(const Socket& socket);

// Retries until `timeout` has passed, also while no process listens. Throws CommunicationError.
Socket connect_to(const std::string& address, std::uint16_t port,
                  std::chrono::milliseconds timeout);

// Transfer whole buffers; return false if the peer has disconnected or, after set_receive_timeout,
// does not send in time.
bool send_all(int socket, const void* data, std::size_t bytes);
bool receive_all(int socket, void* data, std::size_t bytes);
// 0 disables the timeout.
void set_receive_timeout(int socket, std::chrono::milliseconds time);

// Compares in a time that does not depend on where the texts differ.
bool equal_secrets(const std::string& a, const std::string& b);

std::string host_name();

// Returns 128 random bits from the operating system in hexadecimal. Throws CommunicationError.
std::string new_token();

// Peers that have connected to a listening socket and have not authenticated themselves yet.
//
// One thread serves all of them, and none delays another. A peer that does not authenticate itself
// in time is disconnected. When there are too many, so is the oldest one of the address that has
// the most, so that a host that floods the port evicts peers of its own. Nothing is read beyond the
// greeting.
class UnauthenticatedPeers {
 public:
  // Receives the socket of a peer whose greeting is complete, the challenge that it was sent, and
  // the greeting.
  using Greeted =
      std::function<void(Socket peer, const std::string& challenge, const std::string& greeting)>;

  // `greeting_bytes`: the length of a greeting.
  UnauthenticatedPeers(std::size_t greeting_bytes, Greeted greeted)
      : greeting_bytes_(greeting_bytes), greeted_(std::move(greeted)) {}

  // Waits until one of `others` or a peer has data, or a peer's time is over. Reads the greetings,
  // disconnects the peers whose time is over, and returns `others` with what poll() found.
  std::vector<pollfd> wait(std::vector<pollfd> others);
  // Accepts the next connection that waits at `listener` and sends it the challenge.
  void accept(const Socket& listener, const std::string& challenge = {});

 private:
  struct UnauthenticatedPeer {
    Socket socket;
    std::string address, challenge, received;
    std::chrono::steady_clock::time_point until;
  };

  // True if the peer is done: it has authenticated itself, or is to be disconnected.
  bool read_greeting(UnauthenticatedPeer& peer) const;
  void make_room();

  std::size_t greeting_bytes_;
  Greeted greeted_;
  std::list<UnauthenticatedPeer> peers_;
};

}  // namespace shardwright::executor
