#include "core/lowering/stage_writer.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
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

// The ops of a block through which it waits for what was issued before it: the first one on the
// compute stream, and each op of another stream that reads one of `handed_over` from outside of the
// block, unless it comes after such an op anyway.
std::vector<std::uint16_t> find_entries(const std::vector<Op>& ops,
                                        std::initializer_list<TensorId> handed_over) {
  std::vector<std::uint16_t> entries;
  std::vector<bool> after(ops.size(), false);  // an entry
  std::array<bool, kStreams> stream_after{};
  std::vector<TensorRef> written;
  for (std::uint16_t i = 0; i < ops.size(); ++i) {
    const Op& op = ops[i];
    const auto stream = static_cast<std::size_t>(op.stream);
    after[i] = stream_after[stream] || std::any_of(op.waits.begin(), op.waits.end(),
                                                   [&](std::uint16_t on) { return after[on]; });
    const bool enters = std::any_of(op.reads.begin(), op.reads.end(), [&](TensorRef ref) {
      return std::find(handed_over.begin(), handed_over.end(), ref.tensor) != handed_over.end() &&
             std::find(written.begin(), written.end(), ref) == written.end();
    });
    if (!after[i] && (enters || op.stream == Stream::Compute)) {
      entries.push_back(i);
      after[i] = true;
    }
    stream_after[stream] = after[i];
    written.insert(written.end(), op.writes.begin(), op.writes.end());
  }
  return entries;
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
  if (in_.stack.gradient_placeholders && in_.plan.zero_stage < 3) {
    rank_.persistent.push_back(
        {MemoryCategory::Temporaries,
         gradient_placeholders(in_.blocks, in_.schedule, in_.parts, in_.plan, stage_)});
  }
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

std::size_t StageWriter::position_of(std::int32_t chunk) const {
  return static_cast<std::size_t>(
      in_.schedule.position[static_cast<std::size_t>(stage_)][static_cast<std::size_t>(chunk)]);
}

bool StageWriter::holds(std::int32_t position) const {
  const auto& positions = in_.schedule.position[static_cast<std::size_t>(stage_)];
  return std::find(positions.begin(), positions.end(), position) != positions.end();
}

std::vector<StageWriter::Part> StageWriter::list_parts(std::int32_t chunk) const {
  const BlockSet& blocks = in_.blocks;
  const std::size_t position = position_of(chunk);
  const LayerRange& range = in_.parts[position];
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
    const bool copies = in_.model.tied_embeddings && in_.plan.zero_stage < 3 && !holds(0);
    parts.push_back({&blocks.head, copies ? &blocks.tied_head_parameters : &blocks.head_parameters,
                     static_cast<std::int32_t>(in_.model.layers)});
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
  call.first_covered = static_cast<std::uint32_t>(rank_.covered.size());
  rank_.calls.push_back(call);
  const std::vector<Op>& ops = common_.block(block).ops;
  rank_.ops += static_cast<std::uint32_t>(ops.size());
  return ops;
}

std::uint32_t StageWriter::call_common(BlockId block, std::int32_t layer, const Slot& slot,
                                       const std::vector<std::uint32_t>& on,
                                       const std::vector<PartId>& covered) {
  open_call(block, layer, slot);
  rank_.covered.insert(rank_.covered.end(), covered.begin(), covered.end());
  for (const std::uint32_t op : on) rank_.waits.push_back({rank_.calls.back().first_op, op});
  return rank_.ops - 1;
}

const std::vector<std::uint16_t>& StageWriter::entries_of(BlockId block) {
  if (entries_.size() <= block) entries_.resize(block + 1);
  std::optional<std::vector<std::uint16_t>>& entries = entries_[block];
  if (!entries) {
    entries = find_entries(common_.block(block).ops,
                           {in_.blocks.hidden.tensor, in_.blocks.hidden_gradient.tensor});
  }
  return *entries;
}

void StageWriter::call_part(BlockId block, const Part& part, const Slot& slot) {
  if (wrote_part_ && !last_op_on_compute_) wait_for(last_op_);
  const std::vector<Op>& ops = open_call(block, part.layer, slot);
  const std::uint32_t first = rank_.calls.back().first_op;
  for (const std::uint16_t entry : entries_of(block)) {
    for (const std::uint32_t on : pending_) rank_.waits.push_back({first + entry, on});
    const bool elsewhere = ops[entry].stream != Stream::Compute;
    if (wrote_part_ && last_op_on_compute_ && elsewhere)
      rank_.waits.push_back({first + entry, last_op_});
  }
  if (ops.empty()) return;
  pending_.clear();
  last_op_ = rank_.ops - 1;
  last_op_on_compute_ = ops.back().stream == Stream::Compute;
  wrote_part_ = true;
}

void StageWriter::receive(bool gradient, const Place& from, std::int64_t layer, const Slot& slot) {
  if (from.stage == stage_) return;
  const TensorRef tensor = gradient ? in_.blocks.hidden_gradient : in_.blocks.hidden;
  wait_for(call_common(common_.receive(tensor, gradient, from.stage - stage_),
                       static_cast<std::int32_t>(layer), slot, {}));
}

void StageWriter::send(bool gradient, const Place& to, std::int64_t layer, const Slot& slot) {
  if (to.stage == stage_) return;
  const TensorRef tensor = gradient ? in_.blocks.hidden_gradient : in_.blocks.hidden;
  const std::uint32_t op = call_common(common_.send(tensor, gradient, to.stage - stage_),
                                       static_cast<std::int32_t>(layer), slot, {last_op_});
  const bool beside_compute =
      (in_.stack.overlap_p2p && in_.plan.overlap.p2p) || !sends_may_block(in_.plan.schedule);
  if (!beside_compute) wait_for(op);
}

void StageWriter::write_forward(const Slot& slot) {
  const Place here{stage_, slot.chunk};
  const std::vector<Part>& parts = parts_of(slot.chunk);
  std::vector<std::uint32_t>& first_gather = first_gather_[static_cast<std::size_t>(slot.chunk)];
  const LayerRange layers = layers_of(slot.chunk);
  if (const auto from = in_.schedule.previous(here)) receive(false, *from, layers.first, slot);
  slot_gather_.assign(parts.size(), 0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    gather_ahead(parts, i, false, slot);
    if (first_gather[i] > 0) wait_for(std::exchange(first_gather[i], 0) - 1);
    call_part(parts[i].blocks->forward, parts[i], slot);
  }
  if (const auto to = in_.schedule.next(here)) send(false, *to, layers.first + layers.count, slot);
}

void StageWriter::write_backward(const Slot& slot) {
  const Place here{stage_, slot.chunk};
  std::vector<Part> parts = parts_of(slot.chunk);
  std::reverse(parts.begin(), parts.end());
  const bool whole = slot.phase == SlotPhase::Backward;
  const LayerRange layers = layers_of(slot.chunk);
  if (const auto from = in_.schedule.next(here))
    receive(true, *from, layers.first + layers.count, slot);
  slot_gather_.assign(parts.size(), 0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const PartBlocks& blocks = *parts[i].blocks;
    gather_ahead(parts, i, true, slot);
    if (blocks.recomputed) call_part(blocks.recompute, parts[i], slot);
    call_part(whole ? blocks.backward : blocks.backward_input, parts[i], slot);
    if (whole) reduce_part(parts[i], slot);
  }
  if (const auto to = in_.schedule.previous(here)) send(true, *to, layers.first, slot);
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
