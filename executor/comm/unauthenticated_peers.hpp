// Peers that have connected to a listening socket and have not authenticated themselves yet.
//
// One thread serves all of them, and none delays another. A peer that does not authenticate itself
// in time is disconnected, and so is the oldest one when there are too many. Nothing is read beyond
// the greeting.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "executor/comm/socket.hpp"

namespace shardwright::executor {

class UnauthenticatedPeers {
 public:
  // The length of the greeting whose first bytes are `received`, as far as they determine it;
  // nothing if they cannot begin a greeting.
  using Length = std::function<std::optional<std::size_t>(const std::string& received)>;
  // Receives the socket of a peer whose greeting is complete, and the greeting.
  using Greeted = std::function<void(Socket peer, const std::string& greeting)>;

  UnauthenticatedPeers(Length length, Greeted greeted);

  // Waits until one of `others` or a peer has data, or a peer's time is over. Reads the greetings,
  // disconnects the peers whose time is over, and returns `others` with what poll() found.
  std::vector<pollfd> wait(std::vector<pollfd> others);
  // Accepts the next connection that waits at `listener`.
  void accept(const Socket& listener);

 private:
  struct UnauthenticatedPeer {
    Socket socket;
    std::string received;
    std::chrono::steady_clock::time_point until;
  };

  // True if the peer is done: it has authenticated itself, or is to be disconnected.
  bool read_greeting(UnauthenticatedPeer& peer) const;

  Length length_;
  Greeted greeted_;
  std::list<UnauthenticatedPeer> peers_;
};

}  // namespace shardwright::executor
