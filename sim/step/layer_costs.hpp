// What the parts of a model cost on one rank, for all the plans that cut its layers alike.
//
// A part (a layer, the embedding, the head) is priced and replayed alone: its compute stream is
// free and its inputs are there when it starts, so that collectives that its kernels wait for count
// and those beside them do not. In a step no part takes less. The estimates of the lower fidelity
// levels (analytic.hpp, bound.hpp) are made of these numbers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/lowering/block_set.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright::sim {

// What one call of a block takes. Plain doubles: seconds and bytes; evaluations add up millions.
struct BlockCost {
  double time = 0.0;          // from its start to the end of its last op
  double passing = 0.0;       // from the arrival of its input, where all else is ready
  double compute = 0.0;       // of `time`, kernels on the compute stream
  double launch = 0.0;        // that the host needs to issue its ops
  double rise = 0.0;          // of memory inside of the block above the level at its start
  double net = 0.0;           // of memory from its start to its end
  double interference = 0.0;  // beyond `time`: collectives inside of it slow its kernels down
  // Of `time`, that the compute stream stands still for collectives even if others slow each of its
  // kernels down all the way.
  double stalled = 0.0;
  double sharding = 0.0;  // FSDP: at least, while its gathers or reductions run
  // Where the host waits for one of its kernels: how much longer it takes behind a block of the
  // same kind, for whose ops the host was busy.
  double behind_its_kind = 0.0;
};

// One block after the other.
BlockCost operator+(const BlockCost& first, const BlockCost& second);

struct PartCost {
  std::array<BlockCost, kSlotPhases> slot;  // backward slots include the recomputed forward pass
  std::array<bool, kSlotPhases> gathers{};  // FSDP: the slot's first block reads the parameters
  PartParameters parameters;
  double gathered_bytes = 0.0;   // FSDP: of the gathered parameters …
  double gradient_bytes = 0.0;   // … and of their unsharded gradient
  bool offloads = false;         // activations go to the host between the passes:
  double offloaded_bytes = 0.0;  // of these …
  double store_time = 0.0;       // … and of their copies there …
  double fetch_time = 0.0;       // … and back

  const BlockCost& of(SlotPhase which) const { return slot[static_cast<std::size_t>(which)]; }
};

struct LayerCosts {
  std::vector<PartCost> kept, recomputed;  // by layer kind; empty where no plan of the cut has it
  std::vector<std::int32_t> kind_of_layer;
  PartCost embedding, head;
  std::optional<PartCost> recomputed_head;  // see BlockSet
  double boundary_bytes = 0.0;              // of the hidden state between stages …
  double message_bytes = 0.0;               // … and of what a rank sends of it

  const PartCost& head_of(const Plan& plan) const {
    return plan.recompute == RecomputePolicy::Full && recomputed_head ? *recomputed_head : head;
  }
};

// `cut`: any plan that cuts layers like the plans to estimate and runs on as many accelerators.
LayerCosts layer_costs(const ModelSpec& model, const Plan& cut, const ClusterSpec& cluster,
                       const StackSpec& stack);

}  // namespace shardwright::sim
