// The table through which ranks find each other, over TCP: one process serves it, all others ask.
//
// Who connects must first send the run's secret token; without it nothing is read or answered, and
// who takes too long is hung up on. Only who has sent it gets a thread. The server listens at the
// address it is given and nowhere else.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "executor/comm/socket.hpp"
#include "executor/comm/store.hpp"

namespace shardwright::executor {

class TcpStoreServer {
 public:
  // Listens at a numeric address or a name of this host; port 0: any that is free. Throws
  // CommunicationError.
  TcpStoreServer(const std::string& address, std::uint16_t port, std::string token);
  ~TcpStoreServer();
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;

  std::uint16_t port() const { return port_; }
  const LocalStore& table() const { return table_; }

 private:
  struct Client {
    Socket socket;
    std::thread thread;
    std::atomic<bool> gone{false};
  };

  void accept_clients();
  void let_in(Socket socket);
  void serve(int client);

  std::string token_;
  LocalStore table_;
  Socket listener_;
  std::uint16_t port_ = 0;
  std::atomic<bool> closing_{false};
  std::list<Client> clients_;  // of the acceptor's thread
  std::thread acceptor_;
};

class TcpStore final : public Store {
 public:
  // Tries to connect until `timeout` has passed, and later waits as long for an answer. Throws
  // CommunicationError.
  TcpStore(const std::string& address, std::uint16_t port, const std::string& token,
           std::chrono::milliseconds timeout);

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override;
  std::optional<std::string> find(const std::string& key) override;

  // The address of this host from which it reaches the server.
  std::string own_address() const;

 private:
  std::mutex mutex_;
  Socket socket_;
};

}  // namespace shardwright::executor
