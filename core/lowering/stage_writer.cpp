#include "core/lowering/stage_writer.hpp"

#include <algorithm>
#include <utility>

#include "core/lowering/stage_states.hpp"

namespace shardwright {
namespace {

bool reads(const Block& block, TensorId tensor) {
  return std::any_of(block.ops.begin(), block.ops.end(), [tensor](const Op& op) {
    return std::any_of(op.reads.begin(), op.reads.end(),
                       [tensor](TensorRef ref) { return ref.tensor == tensor; });
  });
}

}  // namespace

StageWriter::StageWriter(const LoweringInput& input, std::int32_t stage, CommonBlocks& common)
    : in_(input), stage_(stage), common_(common) {
  const auto chunks =
      static_cast<std::int32_t>(in_.schedule.position[static_cast<std::size_t>(stage)].size());
  for (std::int32_t chunk = 0; chunk < chunks; ++chunk) {
    parts_.push_back(list_parts(chunk));
    first_gather_.emplace_back(parts_.back().size(), 0);
  }
  completed_.assign(static_cast<std::size_t>(chunks), 0);
}

RankProgram StageWriter::write() {
  rank_.stage = stage_;
  const PartParameters parameters =
      stage_parameters(in_.model, in_.blocks, in_.schedule, in_.parts, stage_);
  rank_.parameters = {parameters.dense, parameters.expert};
  rank_.persistent = persistent_memory(parameters, in_.plan, in_.stack);
  gather_beside_first_forward();
  for (const Slot& slot : in_.schedule.stages[static_cast<std::size_t>(stage_)]) {
    if (slot.phase == SlotPhase::Forward) write_forward(slot);
    if (slot.phase == SlotPhase::Backward || slot.phase == SlotPhase::BackwardInput)
      write_backward(slot);
    if (slot.phase == SlotPhase::BackwardWeight) write_weight_gradients(slot);
  }
  write_optimizer();
  gather_after_optimizer();
  return std::move(rank_);
}

const LayerRange& StageWriter::layers_of(std::int32_t chunk) const {
  const auto& positions = in_.schedule.position[static_cast<std::size_t>(stage_)];
  return in_.parts[static_cast<std::size_t>(positions[static_cast<std::size_t>(chunk)])];
}

// The layer whose input is the chunk's output. A chunk at an end may have no layers.
std::int32_t StageWriter::layer_behind(std::int32_t chunk) const {
  const LayerRange& range = layers_of(chunk);
  return static_cast<std::int32_t>(range.first + range.count);
}

std::vector<StageWriter::Part> StageWriter::list_parts(std::int32_t chunk) const {
  const BlockSet& blocks = in_.blocks;
  const auto position = static_cast<std::size_t>(
      in_.schedule.position[static_cast<std::size_t>(stage_)][static_cast<std::size_t>(chunk)]);
  const LayerRange& range = layers_of(chunk);
  std::vector<Part> parts;
  if (position == 0) parts.push_back({&blocks.embedding, &blocks.embedding_parameters, 0});
  for (std::int64_t i = 0; i < range.count; ++i) {
    const auto layer = static_cast<std::size_t>(range.first + i);
    const auto kind = static_cast<std::size_t>(blocks.kind_of_layer[layer]);
    const bool full = in_.plan.recompute == RecomputePolicy::Full;
    const bool recomputed =
        full && (in_.plan.recompute_layers == 0 || i < in_.plan.recompute_layers);
    parts.push_back({recomputed ? &blocks.recomputed[kind] : &blocks.kept[kind],
                     &blocks.layer_parameters[kind], static_cast<std::int32_t>(layer)});
  }
  if (position + 1 == in_.parts.size()) {
    parts.push_back(
        {&blocks.head, &blocks.head_parameters, static_cast<std::int32_t>(in_.model.layers)});
  }
  return parts;
}

const std::vector<Op>& StageWriter::open_call(BlockId block, std::int32_t layer, const Slot& slot) {
  Call call;
  call.block = block;
  call.layer = layer;
  call.microbatch = slot.microbatch;
  call.chunk = slot.chunk;
  call.first_op = rank_.ops;
  call.first_wait = static_cast<std::uint32_t>(rank_.waits.size());
  rank_.calls.push_back(call);
  const std::vector<Op>& ops = common_.block(block).ops;
  rank_.ops += static_cast<std::uint32_t>(ops.size());
  return ops;
}

std::uint32_t StageWriter::call_common(BlockId block, std::int32_t layer, const Slot& slot,
                                       const std::vector<std::uint32_t>& on) {
  open_call(block, layer, slot);
  for (const std::uint32_t op : on) rank_.waits.push_back({rank_.calls.back().first_op, op});
  return rank_.ops - 1;
}

// True if the block begins on another stream with what the part before it hands over.
bool StageWriter::starts_with_collective(BlockId block) const {
  const std::vector<Op>& ops = common_.block(block).ops;
  if (ops.empty() || ops.front().stream == Stream::Compute) return false;
  return std::any_of(ops.front().reads.begin(), ops.front().reads.end(), [&](TensorRef ref) {
    return ref.tensor == in_.blocks.hidden.tensor ||
           ref.tensor == in_.blocks.hidden_gradient.tensor;
  });
}

void StageWriter::call_part(BlockId block, const Part& part, const Slot& slot) {
  if (wrote_part_ && (!last_op_on_compute_ || starts_with_collective(block))) wait_for(last_op_);
  const std::uint32_t first = rank_.ops;
  const std::vector<Op>& ops = open_call(block, part.layer, slot);
  for (const std::uint32_t op : pending_) rank_.waits.push_back({first, op});
  // A block may begin with a collective; what it computes must wait for the same ops.
  const auto compute = std::find_if(ops.begin(), ops.end(),
                                    [](const Op& op) { return op.stream == Stream::Compute; });
  if (compute != ops.begin() && compute != ops.end()) {
    const auto place = static_cast<std::uint32_t>(compute - ops.begin());
    for (const std::uint32_t op : pending_) rank_.waits.push_back({first + place, op});
  }
  pending_.clear();
  if (ops.empty()) return;
  last_op_ = rank_.ops - 1;
  last_op_on_compute_ = ops.back().stream == Stream::Compute;
  wrote_part_ = true;
}

void StageWriter::receive(bool gradient, const Place& from, std::int32_t layer, const Slot& slot) {
  if (from.stage == stage_) return;
  const TensorRef tensor = gradient ? in_.blocks.hidden_gradient : in_.blocks.hidden;
  wait_for(call_common(common_.receive(tensor, gradient, from.stage - stage_), layer, slot, {}));
}

void StageWriter::send(bool gradient, const Place& to, std::int32_t layer, const Slot& slot) {
  if (to.stage == stage_) return;
  const TensorRef tensor = gradient ? in_.blocks.hidden_gradient : in_.blocks.hidden;
  const std::uint32_t op =
      call_common(common_.send(tensor, gradient, to.stage - stage_), layer, slot, {last_op_});
  const bool beside_compute =
      (in_.stack.overlap_p2p && in_.plan.overlap.p2p) || !sends_may_block(in_.plan.schedule);
  if (!beside_compute) wait_for(op);
}

void StageWriter::write_forward(const Slot& slot) {
  const Place here{stage_, slot.chunk};
  const std::vector<Part>& parts = parts_of(slot.chunk);
  std::vector<std::uint32_t>& first_gather = first_gather_[static_cast<std::size_t>(slot.chunk)];
  if (const auto from = in_.schedule.previous(here))
    receive(false, *from, static_cast<std::int32_t>(layers_of(slot.chunk).first), slot);
  slot_gather_.assign(parts.size(), 0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    gather_ahead(parts, i, false, slot);
    if (first_gather[i] > 0) wait_for(std::exchange(first_gather[i], 0) - 1);
    call_part(parts[i].blocks->forward, parts[i], slot);
  }
  if (const auto to = in_.schedule.next(here)) send(false, *to, layer_behind(slot.chunk), slot);
}

void StageWriter::write_backward(const Slot& slot) {
  const Place here{stage_, slot.chunk};
  std::vector<Part> parts = parts_of(slot.chunk);
  std::reverse(parts.begin(), parts.end());
  const bool whole = slot.phase == SlotPhase::Backward;
  if (const auto from = in_.schedule.next(here))
    receive(true, *from, layer_behind(slot.chunk), slot);
  slot_gather_.assign(parts.size(), 0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const PartBlocks& blocks = *parts[i].blocks;
    gather_ahead(parts, i, true, slot);
    if (blocks.recomputed) call_part(blocks.recompute, parts[i], slot);
    call_part(whole ? blocks.backward : blocks.backward_input, parts[i], slot);
    if (whole) reduce_part(parts[i], slot);
  }
  if (const auto to = in_.schedule.previous(here))
    send(true, *to, static_cast<std::int32_t>(layers_of(slot.chunk).first), slot);
  if (whole) ++completed_[static_cast<std::size_t>(slot.chunk)];
}

void StageWriter::write_weight_gradients(const Slot& slot) {
  const std::vector<Part>& parts = parts_of(slot.chunk);
  for (std::size_t i = parts.size(); i-- > 0;) {
    call_part(parts[i].blocks->backward_weight, parts[i], slot);
    reduce_part(parts[i], slot);
  }
  ++completed_[static_cast<std::size_t>(slot.chunk)];
}

void StageWriter::gather_part(const Part& part, bool backward, std::size_t index,
                              const Slot& slot) {
  const PartBlocks& blocks = *part.blocks;
  const BlockId reader = !backward           ? blocks.forward
                         : blocks.recomputed ? blocks.recompute
                                             : blocks.backward_input;
  if (slot_gather_[index] > 0 || !reads(common_.block(reader), blocks.parameters)) return;
  const double element = storage_bytes(in_.plan.precision).value();
  const BlockId gather =
      common_.gather({blocks.parameters, 0}, Bytes(part.parameters->dense * element),
                     Bytes(part.parameters->expert * element));
  // Not before the part before it has been computed: that bounds the copies that are alive.
  std::vector<std::uint32_t> on;
  if (wrote_part_) on.push_back(last_op_);
  slot_gather_[index] = call_common(gather, part.layer, slot, on) + 1;
}

}  // namespace shardwright
