// Communicators between CPUs over TCP, through Gloo.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/comm/communicator.hpp"
#include "executor/comm/store.hpp"

namespace shardwright::executor {

struct GlooOptions {
  // This rank's address as the other ranks reach it.
  std::string address = "127.0.0.1";
  std::chrono::milliseconds timeout{60'000};
};

// The network device that the communicators of one rank share. Members authenticate each other
// (peer_sockets.hpp): only ranks that can read the store join.
class GlooDevice {
 public:
  explicit GlooDevice(const GlooOptions& options);
  ~GlooDevice();

  // The port at which this rank listens for the others.
  std::uint16_t port() const;

  // Connects the group's members; returns when all have called it. `key` names the group in the
  // store that they share. Throws CommunicationError.
  std::unique_ptr<Communicator> connect(Store& store, const std::string& key, int rank, int size);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace shardwright::executor
