#include "executor/launch/rendezvous.hpp"

#include <utility>

#include "executor/comm/communicator.hpp"

namespace shardwright::executor {
namespace {

constexpr const char* kBadInputKey = "bad_input";

}  // namespace

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
  if (store_ && !device_) device_ = std::make_unique<GlooDevice>(store_->own_address(), timeout_);
  return [this, prefix = std::move(prefix)](const std::string& key, int rank, int size) {
    return device_->connect(*store_, prefix + key, rank, size);
  };
}

void report_bad_input(Store& store, const std::string& text) {
  try {
    store.set(kBadInputKey, text);
    // The answer arrives after the store has the text.
    store.find(kBadInputKey);
  } catch (const CommunicationError&) {
    // The process that served the store has ended, and with it the run.
  }
}

std::optional<std::string> reported_bad_input(const LocalStore& store) {
  const auto found = store.entry(kBadInputKey);
  return found ? std::optional(found->value) : std::nullopt;
}

std::optional<std::string> reported_bad_input(const Rendezvous& rendezvous,
                                              std::chrono::milliseconds limit) {
  if (rendezvous.local_store() != nullptr) return reported_bad_input(*rendezvous.local_store());
  try {
    return rendezvous.connect(limit)->find(kBadInputKey);
  } catch (const CommunicationError&) {
    return std::nullopt;
  }
}

}  // namespace shardwright::executor
