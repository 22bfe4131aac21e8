// TCP sockets of the operating system, and the name of this host.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

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

}  // namespace shardwright::executor
