// Communicators between CPUs over TCP, through Gloo.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/comm/communicator.hpp"
#include "executor/comm/peer_sockets.hpp"
#include "executor/comm/tcp_store.hpp"

namespace gloo::transport {
class Device;
}

namespace shardwright::executor {

// The network device that the communicators of one rank share. Members authenticate each other
// (peer_sockets.hpp): only ranks that can read the store join.
class GlooDevice {
 public:
  // `address` is that of this rank as the other ranks reach it.
  explicit GlooDevice(const std::string& address,
                      std::chrono::milliseconds timeout = std::chrono::minutes(1));

  // The port at which this rank listens for the others.
  std::uint16_t port() const { return listener_.port(); }

  // Connects the group's members; returns when all have called it. `key` names the group in the
  // store that they share. Throws CommunicationError.
  std::unique_ptr<Communicator> connect(Store& store, const std::string& key, int rank, int size);

 private:
  std::vector<Socket> connect_members(Store& store, const std::string& key, int rank, int size);

  std::chrono::milliseconds timeout_;
  PeerListener listener_;
  std::shared_ptr<gloo::transport::Device> device_;
};

}  // namespace shardwright::executor
