// How the ranks of a run reach each other: the rendezvous and the network device of one rank.
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
  // Connects to the store of the master, or serves it. A world of one has no store unless our
  // launcher started it. Throws CommunicationError.
  Rendezvous(const LaunchPlace& place, const std::string& token, std::chrono::milliseconds timeout);

  // Null where there is no store.
  TcpStore* store() const { return store_.get(); }
  // A further connection to the same table, for a thread of its own. In a world of one without a
  // store it is a table of its own.
  std::unique_ptr<Store> connect() const { return connect(timeout_); }
  // The same, with answers within `timeout`.
  std::unique_ptr<Store> connect(std::chrono::milliseconds timeout) const;
  // The table itself, in the process that serves it; else null.
  const LocalStore* table() const { return server_ ? &server_->table() : nullptr; }

  // Opens communicators between CPUs whose keys begin with `prefix`. The rendezvous outlives it.
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
