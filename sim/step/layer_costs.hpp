// The times of the parts of a model on one rank, for all the plans that cut its layers alike.
//
// A part (a layer, the embedding, the head) is priced and replayed alone: its compute stream is
// free and its inputs are there when it starts, so that collectives that its kernels wait for count
// and those beside them do not. In a step no part takes less. The estimates of the lower fidelity
// levels (analytic.hpp) are made of these numbers.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/lowering/block_set.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright::sim {

// The times and bytes of one call of a block. Plain doubles: seconds and bytes; evaluations add up
// millions.
struct BlockCost {
  // The time from its start to the end of its last op.
  double time = 0.0;
  // The time from the arrival of its input, where all else is ready.
  double passing = 0.0;
  // The part of `time` in which kernels run on the compute stream.
  double compute = 0.0;
  // The time that the host needs to issue its ops.
  double launch = 0.0;
  // The part of `launch` behind the start of its last op.
  double launch_behind = 0.0;
  // The rise of memory inside of the block above the level at its start.
  double rise = 0.0;
  // The growth of memory from its start to its end.
  double net = 0.0;
  // Extra time, not included in `time`, because collectives inside of it slow its kernels down.
  double interference = 0.0;
  // The part of `time` in which the compute stream stands still for collectives even if others slow
  // each of its kernels down all the way.
  double stalled = 0.0;
  // A lower bound of its time while FSDP's gathers or reductions run.
  double sharding = 0.0;
  // The time that a block whose host waits for one of its kernels takes longer behind a block of
  // the same kind, for whose ops the host was busy.
  double behind_its_kind = 0.0;
};

// One block after the other.
BlockCost operator+(const BlockCost& first, const BlockCost& second);

struct PartCost {
  // The cost of each slot. Backward slots include the recomputed forward pass, unless the layer's
  // group runs again as a whole.
  EnumArray<SlotPhase, BlockCost> slot;
  // The recomputed forward pass of a layer whose group runs again as a whole.
  BlockCost rerun;
  // True if the slot's first block reads FSDP's parameters.
  EnumArray<SlotPhase, bool> gathers{};
  PartParameters parameters;
  // Bytes of FSDP's gathered parameters.
  double gathered_bytes = 0.0;
  // Bytes of their unsharded gradient.
  double gradient_bytes = 0.0;
  // True if activations go to the host between the passes.
  bool offloads = false;
  // Bytes of these activations.
  double offloaded_bytes = 0.0;
  // The time of their copies to the host.
  double store_time = 0.0;
  // The time of their copies back.
  double fetch_time = 0.0;

  // The time that all of the part's kernels take in a slot, and the host's time for their launches.
  double time_in(SlotPhase phase) const {
    return slot[phase].time + (hands_gradient_on(phase) ? rerun.time : 0.0);
  }
  double launch_in(SlotPhase phase) const {
    return slot[phase].launch + (hands_gradient_on(phase) ? rerun.launch : 0.0);
  }
};

struct LayerCosts {
  // The parts of each layer kind; empty where no plan of the cut has it.
  std::vector<PartCost> kept, recomputed;
  GroupedParts<PartCost> grouped;
  std::vector<std::int32_t> kind_of_layer;
  PartCost embedding, head;
  // The head of BlockSet::recomputed_head.
  std::optional<PartCost> recomputed_head;
  // Bytes of the hidden state between stages.
  double boundary_bytes = 0.0;
  // Bytes that a rank sends of it.
  double message_bytes = 0.0;
  // How much longer a kernel takes on the slowest device of the plan than on a typical one.
  double slowest_device = 1.0;

  const PartCost& head_of(const Plan& plan) const {
    return plan.reruns_layers() && recomputed_head ? *recomputed_head : head;
  }
};

// Changes the prices of a block's ops where ranks on other pools have a say in them.
using PriceChange = std::function<void(BlockId, std::vector<Seconds>&)>;

// `cut`: any plan that cuts layers like the plans to estimate and runs on as many accelerators.
LayerCosts layer_costs(const ModelSpec& model, const Plan& cut, const ClusterSpec& cluster,
                       const StackSpec& stack, const PriceChange& change = {});

}  // namespace shardwright::sim
