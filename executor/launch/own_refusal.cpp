#include "executor/launch/own_refusal.hpp"

#include <algorithm>

#include "executor/comm/communicator.hpp"
#include "executor/launch/agreement.hpp"
#include "executor/launch/rendezvous.hpp"

namespace shardwright::executor {

void tell_other_ranks(const LaunchPlace& place, const std::string& token, const InputError& error,
                      std::chrono::milliseconds timeout) {
  if (place.launcher == kOwnLauncher || place.world == 1 || token.empty()) return;
  constexpr std::chrono::milliseconds kLongest{30'000};
  const auto limit = std::min(timeout, kLongest);
  try {
    const Rendezvous rendezvous(place, token, limit);
    report_refusal(*rendezvous.store(), place.rank, place.world, error, limit);
  } catch (const CommunicationError&) {
    // Nobody is there to be told.
  }
}

}  // namespace shardwright::executor
