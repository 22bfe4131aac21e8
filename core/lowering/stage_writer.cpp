#include "core/lowering/stage_writer.hpp"

#include <algorithm>
#include <utility>

#include "core/lowering/message_waits.hpp"
#include "core/lowering/stage_states.hpp"
#include "core/program/groups.hpp"

namespace shardwright {
namespace {

// Writes the calls of one slot as walk_slot() comes to them.
class SlotCalls {
 public:
  using Part = StageWriter::Part;

  SlotCalls(StageWriter& writer, const Slot& slot)
      : writer_(writer),
        slot_(slot),
        first_gather_(writer.first_gather[static_cast<std::size_t>(slot.chunk)]),
        ops_(first_gather_.size()) {}

  // Does not start before the part before it has been computed: that bounds the copies that are
  // alive.
  void gather(const Part& part, std::size_t place) {
    const PartBlocks& blocks = *part.part;
    if (!gathers_parameters(writer_.in.blocks, blocks, slot_.phase)) return;
    const double element = storage_bytes(writer_.in.plan.precision).value();
    const PartParameters& parameters = writer_.parameters_of(part);
    const BlockId gather = writer_.around.gather(
        {blocks.parameters, 0},
        {parameters.dense_weights() * element, parameters.expert_weights() * element});
    ops_[place].gather = call(gather, part, writer_.calls.ends());
  }

  void fetch(const Part& part, std::size_t place) {
    ops_[place].copy = call(part.part->fetch, part, writer_.calls.ends());
  }

  void rerun(const Part& part, std::size_t place) {
    writer_.calls.wait_for(std::exchange(ops_[place].gather, {}));
    writer_.calls.call_part(part.part->recompute, part.layer, slot_);
  }

  void run(const Part& part, std::size_t place) {
    const PartBlocks& blocks = *part.part;
    writer_.calls.wait_for(ops_[place].gather);
    switch (slot_.phase) {
      case SlotPhase::Forward:
        if (place >= kPartsBeforeStore)
          writer_.calls.wait_for(ops_[place - kPartsBeforeStore].copy);
        writer_.calls.wait_for(std::exchange(first_gather_[place], {}));
        if (writer_.offloads) before_ = writer_.calls.ends();
        writer_.calls.call_part(blocks.forward, part.layer, slot_);
        break;
      case SlotPhase::Backward:
      case SlotPhase::BackwardInput:
        writer_.calls.wait_for(ops_[place].copy);
        if (blocks.recomputed && part.group == 1)
          writer_.calls.call_part(blocks.recompute, part.layer, slot_);
        writer_.calls.call_part(
            slot_.phase == SlotPhase::Backward ? blocks.backward : blocks.backward_input,
            part.layer, slot_);
        break;
      case SlotPhase::BackwardWeight:
        writer_.calls.call_part(blocks.backward_weight, part.layer, slot_);
        break;
    }
  }

  // The copy is issued, and the memory given back, after the part that it runs beside: until then
  // both parts hold theirs.
  void store(const Part& part, std::size_t place) {
    ops_[place].copy = call(part.part->store, part, before_);
  }

  void reduce(const Part& part, std::size_t) { reduce_part(writer_, part, slot_); }

 private:
  std::uint32_t call(BlockId block, const Part& part, const std::vector<std::uint32_t>& on) {
    return writer_.calls.call_around(block, part.layer, slot_, on);
  }

  StageWriter& writer_;
  const Slot& slot_;
  std::vector<StageWriter::OptionalOp>& first_gather_;
  // FSDP's gather of each place, and the copy of its activations to the host or back.
  struct PlaceOps {
    StageWriter::OptionalOp gather, copy;
  };
  std::vector<PlaceOps> ops_;
  // The ends of the part before the one at hand.
  std::vector<std::uint32_t> before_;
};

const std::vector<std::int32_t>& positions_of(const LoweringInput& in, std::int32_t stage) {
  return in.schedule.position[static_cast<std::size_t>(stage)];
}

// Tensors that parts get from other calls than those of their own blocks.
std::vector<TensorId> handed_over(const BlockSet& blocks) {
  std::vector<TensorId> tensors = {blocks.hidden.tensor, blocks.hidden_gradient.tensor};
  for (const PartBlocks& part : blocks.kept) {
    if (!part.offloads) continue;
    for (const TensorRef ref : blocks.blocks[part.fetch].ops.front().writes)
      tensors.push_back(ref.tensor);
  }
  return tensors;
}

// Layer `layer` is the one whose input crosses the boundary.
void receive(StageWriter& writer, bool gradient, const Place& from, std::int64_t layer,
             const Slot& slot) {
  if (from.stage == writer.stage) return;
  const BlockSet& blocks = writer.in.blocks;
  const BlockId block = writer.around.receive(gradient ? blocks.hidden_gradient : blocks.hidden,
                                              gradient, from.stage - writer.stage);
  writer.calls.wait_for(
      writer.calls.call_around(block, static_cast<std::int32_t>(layer), slot, {}));
}

void send(StageWriter& writer, bool gradient, const Place& to, std::int64_t layer,
          const Slot& slot) {
  if (to.stage == writer.stage) return;
  const BlockSet& blocks = writer.in.blocks;
  const BlockId block = writer.around.send(gradient ? blocks.hidden_gradient : blocks.hidden,
                                           gradient, to.stage - writer.stage);
  const std::uint32_t op =
      writer.calls.call_around(block, static_cast<std::int32_t>(layer), slot, writer.calls.ends());
  if (kernels_wait_for_sends(writer.in.stack, writer.in.plan)) writer.calls.wait_for(op);
}

void write_slot(StageWriter& writer, const Slot& slot) {
  const LoweringInput& in = writer.in;
  const auto chunk = static_cast<std::size_t>(slot.chunk);
  const Place here{writer.stage, slot.chunk};
  const Place* previous = in.schedule.previous(here);
  const Place* next = in.schedule.next(here);
  const LayerRange layers =
      in.parts[static_cast<std::size_t>(positions_of(in, writer.stage)[chunk])];
  const std::int64_t end = layers.first + layers.count;
  const bool forward = slot.phase == SlotPhase::Forward, gradient = hands_gradient_on(slot.phase);
  writer.calls.begin_slot();
  if (forward && previous) receive(writer, false, *previous, layers.first, slot);
  if (gradient && next) receive(writer, true, *next, end, slot);
  walk_slot(slot.phase, writer.parts[chunk],
            {writer.sharded, parts_gathered_ahead(in.stack, in.plan)}, SlotCalls(writer, slot));
  if (forward && next) send(writer, false, *next, end, slot);
  if (gradient && previous) send(writer, true, *previous, layers.first, slot);
  if (completes_gradients(slot.phase)) ++writer.completed[chunk];
}

std::vector<PersistentMemory> persistent_memory(const StageWriter& writer) {
  const LoweringInput& in = writer.in;
  const PersistentStates states =
      persistent_memory(writer.parameters, in.plan, in.stack, writer.fragments);
  std::vector<PersistentMemory> memory(states.begin(), states.end());
  if (!in.stack.memory.gradient_placeholders || writer.sharded) return memory;
  double largest_layer = 0.0;
  for (const PartParameters& layer : in.blocks.layer_parameters)
    largest_layer = std::max(largest_layer, layer.dense);
  memory.push_back({MemoryCategory::Temporaries,
                    gradient_placeholders(largest_layer, in.blocks.embedding_parameters.dense,
                                          writer.ends_of_model.head, in.plan)});
  return memory;
}

}  // namespace

StageWriter::StageWriter(const LoweringInput& input, std::int32_t number,
                         SurroundingBlocks& around_parts)
    : in(input),
      around(around_parts),
      calls(around, handed_over(in.blocks)),
      stage(number),
      ends_of_model(shardwright::ends_of_model(positions_of(in, stage), in.parts.size())),
      sharded(shards_parameters(in.model, in.plan)),
      // FSDP gathers and reduces what the part's own parameters are.
      copies_embedding(!sharded && shardwright::copies_embedding(in.model, in.plan, ends_of_model)),
      head_and_copy(in.blocks.head_parameters),
      parameters(stage_parameters(in.model, in.blocks, in.schedule, in.parts, in.plan, stage)),
      completed(positions_of(in, stage).size(), 0) {
  for (const PartBlocks& part : in.blocks.kept) offloads = offloads || part.offloads;
  if (copies_embedding) head_and_copy += in.blocks.embedding_parameters;
  for (const std::int32_t position : positions_of(in, stage)) {
    parts.push_back(
        parts_of_chunk(in.blocks, in.plan, in.parts, static_cast<std::size_t>(position), stage));
    first_gather.emplace_back(parts.back().size());
  }
}

const PartParameters& StageWriter::parameters_of(const Part& part) const {
  const BlockSet& blocks = in.blocks;
  if (part.part == &blocks.embedding) return blocks.embedding_parameters;
  if (part.layer == in.model.layers) return head_and_copy;
  return blocks.layer_parameters[static_cast<std::size_t>(
      blocks.kind_of_layer[static_cast<std::size_t>(part.layer)])];
}

RankProgram write_stage(const LoweringInput& input, std::int32_t stage, SurroundingBlocks& around) {
  StageWriter writer(input, stage, around);
  const std::vector<Slot>& slots = input.schedule.stages[static_cast<std::size_t>(stage)];
  // Chunks are about as long, and slots have messages at their ends.
  writer.calls.reserve(slots.size() * (writer.parts.front().size() + 3));
  gather_beside_first_forward(writer);
  for (const Slot& slot : slots) write_slot(writer, slot);
  writer.calls.begin_slot();
  write_optimizer(writer);
  agree_on_local_steps(writer);
  gather_after_optimizer(writer);
  RankProgram rank = writer.calls.take();
  rank.stage = stage;
  rank.parameters = {writer.parameters.dense, writer.parameters.expert};
  rank.persistent = persistent_memory(writer);
  return rank;
}

}  // namespace shardwright
