// Authenticated sockets between ranks that share a store.
//
// A listening rank publishes an invitation in the store, which only ranks with the run's token can
// read: its address and two one-time secrets. The connecting rank sends the first secret and
// receives the second, which authenticates both sides. Other peers do not delay the ranks and are
// disconnected after a timeout.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "executor/comm/socket.hpp"

namespace shardwright::executor {

class PeerListener {
 public:
  // Listens at a numeric address of this host on a free port. Throws CommunicationError.
  explicit PeerListener(const std::string& address);
  ~PeerListener();
  PeerListener(const PeerListener&) = delete;
  PeerListener& operator=(const PeerListener&) = delete;

  std::uint16_t port() const { return port_; }

  // Creates an invitation for one peer.
  std::string invite();
  // Waits for the peer that uses the invitation and returns its socket; called once for each.
  // Throws CommunicationError if no peer connects in time.
  Socket await(const std::string& invitation, std::chrono::milliseconds timeout);

 private:
  struct InvitedPeer {
    // The second secret.
    std::string server_secret;
    // Closed until the peer has connected.
    Socket socket;
  };
  void serve();
  // Accepts a peer that shows the first secret of an invitation.
  void receive(Socket socket, const std::string& client_secret);

  std::string address_;
  Socket socket_;
  std::uint16_t port_ = 0;
  // A connected pair of sockets that stops the thread.
  Socket wake_, woken_;
  std::mutex mutex_;
  std::condition_variable connected_;
  std::map<std::string, InvitedPeer> invited_;
  std::thread thread_;
};

// Connects to the rank that published the invitation. Throws CommunicationError if it does not
// authenticate itself within `timeout`.
Socket connect_to_inviter(const std::string& invitation, std::chrono::milliseconds timeout);

}  // namespace shardwright::executor
