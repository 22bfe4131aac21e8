#include "executor/launch/rendezvous.hpp"

#include <utility>

namespace shardwright::executor {

Rendezvous::Rendezvous(const LaunchPlace& place, const std::string& token,
                       std::chrono::milliseconds timeout)
    : place_(place), token_(token), timeout_(timeout) {
  if (!has_store()) return;
  if (place.serves_rendezvous)
    server_ = std::make_unique<TcpStoreServer>(place.master_address, place.master_port, token);
  store_ = std::make_unique<TcpStore>(place.master_address, place.master_port, token, timeout);
}

bool Rendezvous::has_store() const {
  return place_.world > 1 || place_.launcher == kOwnLauncher;
}

std::unique_ptr<Store> Rendezvous::connect(std::chrono::milliseconds timeout) const {
  if (!has_store()) return std::make_unique<LocalStore>();
  return std::make_unique<TcpStore>(place_.master_address, place_.master_port, token_, timeout);
}

OpenCommunicator Rendezvous::opener(std::string prefix) {
  if (store_ && !device_)
    device_ = std::make_unique<GlooDevice>(GlooOptions{store_->own_address(), timeout_});
  return [this, prefix = std::move(prefix)](const std::string& key, int rank, int size) {
    return device_->connect(*store_, prefix + key, rank, size);
  };
}

}  // namespace shardwright::executor
