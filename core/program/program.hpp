// A Program is one training step of (model, plan, stack): for each distinct kind of rank the list
// of ops in the order in which the host issues them.
//
// Its meaning is CUDA's and NCCL's: a stream runs in issue order, a wait across streams is an
// event, a collective starts when all its members have arrived, the host issues one op after
// another and may run ahead of the device.
//
// Layers repeat, so ops are written once, in Blocks, and a rank's list is made of Calls: "run this
// block for layer 17 and microbatch 3". Ops of a rank are numbered through all of its calls: op i
// of a call has the number first_op + i.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/op/op.hpp"
#include "core/spec/plan.hpp"

namespace shardwright {

// The purposes that memory is held for; the peak is reported by these.
enum class MemoryCategory : std::uint8_t {
  Weights,
  MasterWeights,
  Gradients,
  OptimizerStates,
  Activations,
  // Live inside of one block only.
  Temporaries,
  // Copies that FSDP gathers.
  GatheredParameters,
  Logits,
  CommunicationBuffers,
  // CUDA context, libraries and their workspaces.
  Context,
  // Reserved by the allocator, but not handed out.
  Fragmentation,
};
constexpr auto enum_names(MemoryCategory) {
  return std::array{
      "weights",      "master_weights",      "gradients", "optimizer_states",      "activations",
      "temporaries",  "gathered_parameters", "logits",    "communication_buffers", "context",
      "fragmentation"};
}
inline constexpr int kMemoryCategories = kEnumCount<MemoryCategory>;

// The lifetimes of the instances of a tensor.
enum class Lifetime : std::uint8_t {
  // The instance lives from its write to its last read in the forward and backward blocks of its
  // layer.
  Scoped,
  // Another block writes the instance; the forward pass frees it after its last read, and so does
  // the backward pass with its recomputation (gathered parameters).
  Borrowed,
};

// A family of tensors that differ only in layer and microbatch.
struct TensorSpec {
  std::string name;
  MemoryCategory category = MemoryCategory::Activations;
  // The size of one instance.
  Bytes bytes;
  Lifetime lifetime = Lifetime::Scoped;
  bool per_microbatch = true;
};

using TensorId = std::uint16_t;

// An instance as seen from a call: the tensor of the call's layer plus `layer_offset`, of the
// call's microbatch.
struct TensorRef {
  TensorId tensor = 0;
  std::int16_t layer_offset = 0;

  auto operator<=>(const TensorRef&) const = default;
};

struct Op {
  // "attention.qkv", for example.
  std::string name;
  OpKind kind = OpKind::Gemm;
  Stream stream = Stream::Compute;
  Phase phase = Phase::Forward;
  Precision precision = Precision::Bf16;
  Work work;
  // Earlier ops of this block on other streams.
  std::vector<std::uint16_t> waits;
  // Waits for all kernels that were issued before it, whether or not it reads what they write.
  bool after_kernels = false;
  // True if the host issues nothing further until the op and all kernels issued before it have
  // completed: a receive that the stack waits for, or a kernel whose result the host reads.
  bool holds_host = false;
  // Launches that the host makes before it issues the next op, while this one may run: those of
  // small kernels that no op represents, and of the kernels that the op consists of.
  std::int32_t further_launches = 0;
  // The largest work of any member of the op's group over the mean work, which `work` states. The
  // member with the most work sets the pace.
  double load = 1.0;
  std::vector<TensorRef> reads, writes;
  // Tensors that nothing reads any more after the op.
  std::vector<TensorRef> frees;
  // The parameters that it applies, or whose gradients it adds to: names of `parameter_tensors`
  // without ".weight" and ".bias", with "*" for the call's layer. The rows of several are stacked
  // in this order: "layers.*.attention.q_proj", "layers.*.attention.k_proj", …
  std::vector<std::string> parameters;
  Payload payload = Payload::Tensors;
  // The op runs in each so many steps, for the first time in step number `first`, counted from 1. A
  // program is that of the mean step, in which the op takes this part of its time.
  std::int64_t every = 1;
  std::int64_t first = 1;
  // The steps beside which a collective may run before an op waits for it.
  std::int64_t beside_steps = 0;

  bool runs_in(std::int64_t step) const { return step >= first && (step - first) % every == 0; }
};

// A template: the ops of one layer (or of the embedding, of the head, of a bucket's reduction …) in
// one phase.
struct Block {
  // "layer.forward", for example.
  std::string name;
  std::vector<Op> ops;
  // Where the plan names pools: the pool of its stages, by its number in `pools_of`
  // (core/spec/pools.hpp).
  std::int32_t pool = 0;
  // The pools of the stages to which it sends, and the pools of the replicas that take part in its
  // collectives. Each list is empty where this traffic stays on the block's own pool.
  std::vector<std::int32_t> stage_pools{}, replica_pools{};
};

using BlockId = std::uint32_t;

// A part of the model that holds parameters: a layer by its index, the head (with the final norm
// and the layers that predict further tokens) as the layer after the last one, and the token
// embedding. A stage that holds a second copy of a shared embedding holds it as this part.
using PartId = std::int32_t;
inline constexpr PartId kEmbeddingPart = -1;

// One instance of a block on a rank.
struct Call {
  BlockId block = 0;
  // The layer from 0 on; for sends and receives the one whose input crosses the boundary.
  std::int32_t layer = -1;
  std::int32_t microbatch = -1;
  std::int32_t chunk = 0;
  std::uint32_t first_op = 0;
  // The place of its first wait in RankProgram::waits; they end where the next call's begin.
  std::uint32_t first_wait = 0;
  // The same in RankProgram::covered.
  std::uint32_t first_covered = 0;
};

// Op `op` of the rank waits for the earlier op `on`, which another call issued on another stream.
struct Wait {
  std::uint32_t op = 0;
  std::uint32_t on = 0;
};

// Memory that a rank holds from before the step until after it.
struct PersistentMemory {
  MemoryCategory category = MemoryCategory::Weights;
  Bytes bytes;
};

// Parameters that a stage keeps, counted on one rank (after tensor and expert parallelism).
struct StageParameters {
  // Parameters that are replicated over the data group.
  double dense = 0.0;
  // Parameters that are replicated over the expert-data group.
  double expert = 0.0;
};

struct RankProgram {
  std::int32_t stage = 0;
  std::vector<Call> calls;
  // Waits grouped by call, ascending in `op` within each.
  std::vector<Wait> waits;
  // Grouped by call: the parts whose gradients or parameters a call's collectives carry.
  std::vector<PartId> covered;
  // The number of ops in all calls together.
  std::uint32_t ops = 0;
  // The first call of each slot of the schedule, and the one behind the last slot.
  std::vector<std::uint32_t> slot_calls;
  std::vector<PersistentMemory> persistent;
  StageParameters parameters;

  // The waits of the call with this index.
  std::span<const Wait> waits_of(std::size_t call) const {
    const std::size_t first = calls[call].first_wait;
    const std::size_t end = call + 1 < calls.size() ? calls[call + 1].first_wait : waits.size();
    return {waits.data() + first, end - first};
  }
};

struct Program {
  Plan plan;
  std::vector<TensorSpec> tensors;
  std::vector<Block> blocks;
  // One rank program per pipeline stage: ranks of a stage differ only in the data that they see.
  // Replicas on different pools have stages of their own, in the order of the plan's pools.
  std::vector<RankProgram> stages;

  // The parts that the call with this index covers.
  static std::span<const PartId> covered(const RankProgram& rank, std::size_t call) {
    const std::size_t first = rank.calls[call].first_covered;
    const std::size_t end =
        call + 1 < rank.calls.size() ? rank.calls[call + 1].first_covered : rank.covered.size();
    return {rank.covered.data() + first, end - first};
  }

  // The op with number `op` of a rank program, given the call that it belongs to.
  const Op& op(const Call& call, std::uint32_t number) const {
    return blocks[call.block].ops[number - call.first_op];
  }
};

}  // namespace shardwright
