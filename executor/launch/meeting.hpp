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
  // Joins the others at the place's master, or serves it. A world of one meets nobody. Throws
  // CommunicationError.
  Meeting(const LaunchPlace& place, const std::string& token, std::chrono::milliseconds timeout);

  // Null in a world of one.
  TcpStore* store() const { return store_.get(); }

  // Opens communicators between CPUs whose keys begin with `prefix`. The meeting outlives it.
  OpenCommunicator opener(std::string prefix = "");

 private:
  std::unique_ptr<TcpStoreServer> server_;
  std::unique_ptr<TcpStore> store_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<GlooDevice> device_;
};

}  // namespace shardwright::executor
