// The rendezvous of one rank: its connection to the store and its network device.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "executor/comm/gloo_communicator.hpp"
#include "executor/comm/rank_communicators.hpp"
#include "executor/comm/tcp_store.hpp"
#include "executor/launch/launch_place.hpp"

namespace shardwright::executor {

class Rendezvous {
 public:
  // Connects to the store, or serves it. A single rank has no store unless our launcher started it.
  // Throws CommunicationError.
  Rendezvous(const LaunchPlace& place, const std::string& token, std::chrono::milliseconds timeout);

  // Returns null if there is no store.
  TcpStore* store() const { return store_.get(); }
  // Opens another connection to the store, for another thread. A single rank without a store gets a
  // store of its own.
  std::unique_ptr<Store> connect() const { return connect(timeout_); }
  // The same with another timeout for answers.
  std::unique_ptr<Store> connect(std::chrono::milliseconds timeout) const;
  // Returns the content of the store in the process that serves it, otherwise null.
  const LocalStore* local_store() const { return server_ ? &server_->local_store() : nullptr; }

  // Opens communicators between CPUs whose keys begin with `prefix`. The rendezvous must outlive
  // it.
  OpenCommunicator opener(std::string prefix = "");

 private:
  bool has_store() const;

  LaunchPlace place_;
  std::string token_;
  std::unique_ptr<TcpStoreServer> server_;
  std::unique_ptr<TcpStore> store_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<GlooDevice> device_;
};

// Bad input that a rank finds during training, for instance a token beyond the vocabulary. The rank
// reports it before it leaves its collectives, so that no other rank takes the closed connections
// for a failure.

// Writes the text to the store; the rank calls it before it closes a connection. Does nothing if
// the store is gone.
void report_bad_input(Store& store, const std::string& text);

// Returns the reported text, in the process that serves the store.
std::optional<std::string> reported_bad_input(const LocalStore& store);
// The same in other processes. Returns nothing if the store does not answer within `limit`.
std::optional<std::string> reported_bad_input(const Rendezvous& rendezvous,
                                              std::chrono::milliseconds limit);

}  // namespace shardwright::executor
