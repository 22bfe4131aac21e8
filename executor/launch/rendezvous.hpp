// The rendezvous of one rank: its connection to the store and its network device.
#pragma once

#include <chrono>
#include <memory>
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

}  // namespace shardwright::executor
