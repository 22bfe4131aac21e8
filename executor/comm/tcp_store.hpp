// Key-value stores through which the ranks of a run find each other.
//
// One process serves a store over TCP to all others. Client and server first prove to each other
// that they know the run's secret token (executor/comm/token_proof.hpp). Until then a client gets
// no thread and no answer, and it is disconnected after a timeout. The server listens only at the
// given address. What follows is neither encrypted nor signed.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "executor/comm/socket.hpp"

namespace shardwright::executor {

class Store {
 public:
  virtual ~Store() = default;

  virtual void set(const std::string& key, const std::string& value) = 0;
  // Waits until the key is set. Throws CommunicationError after `timeout`.
  virtual std::string get(const std::string& key, std::chrono::milliseconds timeout) = 0;
  // Returns the value if the key is set or will be within a moment. Throws CommunicationError if
  // the store cannot be reached.
  virtual std::optional<std::string> find(const std::string& key) = 0;
};

// A store within one process: for ranks that are threads, and as the content of a server.
class LocalStore final : public Store {
 public:
  struct Entry {
    std::string value;
    std::chrono::steady_clock::time_point set_at;
  };

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override;
  std::optional<std::string> find(const std::string& key) override;
  // Returns the current entry.
  std::optional<Entry> entry(const std::string& key) const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Entry> entries_;
};

class TcpStoreServer {
 public:
  // Listens at a numeric address or a name of this host; port 0 stands for any free port. Throws
  // CommunicationError.
  TcpStoreServer(const std::string& address, std::uint16_t port, std::string token);
  ~TcpStoreServer();
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;

  std::uint16_t port() const { return port_; }
  const LocalStore& local_store() const { return store_; }
  LocalStore& local_store() { return store_; }

 private:
  struct Client {
    Socket socket;
    std::thread thread;
    std::atomic<bool> finished{false};
  };

  void accept_clients();
  void authenticate(Socket socket, const std::string& challenge, const std::string& greeting);
  void add_client(Socket socket);
  void serve(int client);

  std::string token_;
  LocalStore store_;
  Socket listener_;
  std::uint16_t port_ = 0;
  std::atomic<bool> closing_{false};
  // Used by the acceptor's thread alone.
  std::list<Client> clients_;
  std::thread acceptor_;
};

class TcpStore final : public Store {
 public:
  // Tries to connect until `timeout` has passed, and waits at most as long for each answer. Throws
  // CommunicationError, at once if the server has another token.
  TcpStore(const std::string& address, std::uint16_t port, const std::string& token,
           std::chrono::milliseconds timeout);

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override;
  std::optional<std::string> find(const std::string& key) override;

  // Returns this host's address on the connection to the server.
  std::string own_address() const;

 private:
  std::mutex mutex_;
  Socket socket_;
};

}  // namespace shardwright::executor
