#include "sim/step/full_replay.hpp"

#include <utility>

#include "sim/step/rank_replay.hpp"
#include "sim/step/shared_transfers.hpp"

namespace shardwright::sim {

FullReplay replay_full(const Program& program, const ClusterSpec& cluster, const Prices& prices,
                       const FullOptions& options, const FoldedReplay* event) {
  check_full_options(options, program.plan, cluster);
  check_replay_memory(program);
  FullReplay result;
  result.cancelled = options.stop.stop_requested();
  if (result.cancelled) return result;
  FoldedReplay own;
  // A replay with contention shares NICs itself and not on each accelerator apart.
  if (options.contention || event == nullptr) {
    own = replay_folded(program, options.contention ? prices.without_shared_nics() : prices,
                        {.keep_finish_times = true});
    event = &own;
  }
  NodeLinks links(program.plan, cluster, options.slow_nics);
  SharedTransfers transfers(links.capacities());
  RankReplay replay(program, cluster, prices, *event, options, {std::move(links), &transfers});
  replay.begin(0.0);
  while (replay.go_on()) {
    const auto finished = transfers.next();
    if (!finished) break;
    replay.finish_transfer(*finished);
  }
  result = replay.report();
  result.contention_delay = transfers.lost();
  result.uniform_step = event->step;
  return result;
}

}  // namespace shardwright::sim
