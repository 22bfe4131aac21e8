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

class Meeting {
 public:
  // Joins the others at the place's master, or serves it. A world of one meets nobody but a
  // launcher of ours. Throws CommunicationError.
  Meeting(const LaunchPlace& place, const std::string& token, std::chrono::milliseconds timeout);

  // Null if there is nobody to meet.
  TcpStore* store() const { return store_.get(); }
  // Another way to the same table, for a thread of its own; in a world of one a table of its own.
  std::unique_ptr<Store> connect() const { return connect(timeout_); }
  // The same with answers within `timeout`.
  std::unique_ptr<Store> connect(std::chrono::milliseconds timeout) const;
  // The table itself, in the process that serves it; else null.
  const LocalStore* table() const { return server_ ? &server_->table() : nullptr; }

  // Opens communicators between CPUs whose keys begin with `prefix`. The meeting outlives it.
  OpenCommunicator opener(std::string prefix = "");

 private:
  bool meets() const;

  LaunchPlace place_;
  std::string token_;
  std::unique_ptr<TcpStoreServer> server_;
  std::unique_ptr<TcpStore> store_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<GlooDevice> device_;
};

}  // namespace shardwright::executor
