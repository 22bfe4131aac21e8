// TCP sockets of the operating system, and the name of this host.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace shardwright::executor {

// Owns a descriptor; -1: none.
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
  // The descriptor, whose owner is now the caller.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

// Listens at a numeric address or a name of this host; port 0: any that is free. Throws
// CommunicationError.
Socket listen_at(const std::string& address, std::uint16_t port);
std::uint16_t port_of(const Socket& socket);

// Tries until `timeout` has passed, and goes on trying where nobody listens yet. Throws
// CommunicationError.
Socket connect_to(const std::string& address, std::uint16_t port,
                  std::chrono::milliseconds timeout);

// Whole buffers; false if the other side has gone, or, after set_receive_timeout, is silent.
bool send_all(int socket, const void* data, std::size_t bytes);
bool receive_all(int socket, void* data, std::size_t bytes);
// 0: none.
void set_receive_timeout(int socket, std::chrono::milliseconds time);

// Takes the same time wherever two texts of one length differ.
bool equal_secrets(const std::string& a, const std::string& b);

std::string host_name();

// 128 random bits from the operating system, in hexadecimal. Throws CommunicationError.
std::string new_token();

}  // namespace shardwright::executor
