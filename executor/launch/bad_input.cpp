#include "executor/launch/bad_input.hpp"

#include "executor/comm/communicator.hpp"

namespace shardwright::executor {
namespace {

constexpr const char* kKey = "bad_input";

}  // namespace

void report_bad_input(Store& store, const std::string& text) {
  try {
    store.set(kKey, text);
    store.find(kKey);  // the answer comes after the table has the text
  } catch (const CommunicationError&) {
    // Who served the table is gone, and with it the run.
  }
}

std::optional<std::string> reported_bad_input(const LocalStore& table) {
  const auto entry = table.look(kKey);
  return entry ? std::optional(entry->value) : std::nullopt;
}

std::optional<std::string> reported_bad_input(const Rendezvous& rendezvous,
                                              std::chrono::milliseconds limit) {
  if (rendezvous.table() != nullptr) return reported_bad_input(*rendezvous.table());
  try {
    return rendezvous.connect(limit)->find(kKey);
  } catch (const CommunicationError&) {
    return std::nullopt;
  }
}

}  // namespace shardwright::executor
