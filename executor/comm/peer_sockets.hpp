// Connected sockets between ranks that know each other from the rendezvous.
//
// A rank that listens hands out an invitation through the table of the rendezvous, which only those
// read who have the run's token: its address and two secrets that serve once. Who connects shows
// the first secret, and is answered with the second, so both know that they have met the right one.
// Whoever else connects is not heard, does not hold others up, and is hung up on after a while.
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
  // Listens at a numeric address of this host, at a port that is free. Throws CommunicationError.
  explicit PeerListener(const std::string& address);
  ~PeerListener();
  PeerListener(const PeerListener&) = delete;
  PeerListener& operator=(const PeerListener&) = delete;

  std::uint16_t port() const { return port_; }

  // A new invitation, for one guest.
  std::string invite();
  // The socket of the guest who came with it; called once. Throws CommunicationError if nobody came
  // in time.
  Socket await(const std::string& invitation, std::chrono::milliseconds timeout);

 private:
  struct Guest {
    std::string answer;  // the second secret
    Socket socket;       // none before the guest has come
  };
  void serve();
  // Lets a guest in who shows the secret of an invitation.
  void receive(Socket socket, const std::string& shown);

  std::string address_;
  Socket socket_;
  std::uint16_t port_ = 0;
  Socket wake_, woken_;  // the ends of a pair that ends the thread
  std::mutex mutex_;
  std::condition_variable came_;
  std::map<std::string, Guest> guests_;  // by the first secret
  std::thread thread_;
};

// Follows an invitation. Throws CommunicationError if its host does not answer as it should within
// `timeout`.
Socket follow(const std::string& invitation, std::chrono::milliseconds timeout);

}  // namespace shardwright::executor
