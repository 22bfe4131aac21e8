#include "executor/launch/meeting.hpp"

#include <utility>

namespace shardwright::executor {

Meeting::Meeting(const LaunchPlace& place, const std::string& token,
                 std::chrono::milliseconds timeout)
    : timeout_(timeout) {
  if (place.world == 1) return;
  if (place.serves_rendezvous)
    server_ = std::make_unique<TcpStoreServer>(place.master_address, place.master_port, token);
  store_ = std::make_unique<TcpStore>(place.master_address, place.master_port, token, timeout);
}

OpenCommunicator Meeting::opener(std::string prefix) {
  if (store_ && !device_)
    device_ = std::make_unique<GlooDevice>(GlooOptions{store_->own_address(), timeout_});
  return [this, prefix = std::move(prefix)](const std::string& key, int rank, int size) {
    return device_->connect(*store_, prefix + key, rank, size);
  };
}

}  // namespace shardwright::executor
