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

// Where the ranks of a world listen for each other.
struct GlooOptions {
  std::string address = "127.0.0.1";  // of this rank, as the others reach it
  std::chrono::milliseconds timeout{60'000};
};

// The network device that the communicators of one rank share. Members meet as peer_sockets.hpp
// says: nobody joins who has not read the store, and nobody who connects uninvited is heard.
class GlooDevice {
 public:
  explicit GlooDevice(const GlooOptions& options);
  ~GlooDevice();

  // At which the rank listens for the others.
  std::uint16_t port() const;

  // Connects the group's members with each other; returns when all have called it. `key` names the
  // group in the store, which all of them share. Throws CommunicationError.
  std::unique_ptr<Communicator> connect(Store& store, const std::string& key, int rank, int size);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace shardwright::executor
