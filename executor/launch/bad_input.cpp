#include "executor/launch/bad_input.hpp"

#include "executor/comm/communicator.hpp"

namespace shardwright::executor {
namespace {

constexpr const char* kKey = "bad_input";

}  // namespace

void report_bad_input(Store& store, const std::string& text) {
  try {
    store.set(kKey, text);
    // The answer arrives after the store has the text.
    store.find(kKey);
  } catch (const CommunicationError&) {
    // The process that served the store has ended, and with it the run.
  }
}

std::optional<std::string> reported_bad_input(const LocalStore& store) {
  const auto found = store.entry(kKey);
  return found ? std::optional(found->value) : std::nullopt;
}

std::optional<std::string> reported_bad_input(const Rendezvous& rendezvous,
                                              std::chrono::milliseconds limit) {
  if (rendezvous.local_store() != nullptr) return reported_bad_input(*rendezvous.local_store());
  try {
    return rendezvous.connect(limit)->find(kKey);
  } catch (const CommunicationError&) {
    return std::nullopt;
  }
}

}  // namespace shardwright::executor
