#include "core/lowering/stage_writer.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/lowering/message_waits.hpp"
#include "core/lowering/stage_states.hpp"
#include "core/program/groups.hpp"

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
                                        const std::vector<TensorId>& handed_over) {
  std::vector<std::uint16_t> entries;
  std::vector<bool> after(ops.size(), false);  // an entry
  std::array<bool, kStreams> stream_after{};
  std::vector<TensorRef> written;
  for (std::uint16_t i = 0; i < static_cast<std::uint16_t>(ops.size()); ++i) {
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

// The last op of each stream, unless an op of another stream waits for it.
std::vector<std::uint16_t> find_exits(const std::vector<Op>& ops) {
  std::array<std::optional<std::uint16_t>, kStreams> last{};
  for (std::uint16_t i = 0; i < static_cast<std::uint16_t>(ops.size()); ++i) {
    for (const std::uint16_t on : ops[i].waits) {
      std::optional<std::uint16_t>& end = last[static_cast<std::size_t>(ops[on].stream)];
      if (end == on) end.reset();
    }
    last[static_cast<std::size_t>(ops[i].stream)] = i;
  }
  std::vector<std::uint16_t> exits;
  for (const std::optional<std::uint16_t>& end : last) {
    if (end) exits.push_back(*end);
  }
  return exits;
}

}  // namespace

StageWriter::StageWriter(const LoweringInput& input, std::int32_t stage, SurroundingBlocks& around)
    : in_(input), stage_(stage), around_(around) {
  const auto chunks =
      static_cast<std::int32_t>(in_.schedule.position[static_cast<std::size_t>(stage)].size());
  handed_over_ = {in_.blocks.hidden.tensor, in_.blocks.hidden_gradient.tensor};
  for (const PartBlocks& part : in_.blocks.kept) {
    if (!part.offloads) continue;
    for (const TensorRef ref : around_.block(part.fetch).ops.front().writes)
      handed_over_.push_back(ref.tensor);
  }
  head_and_copy_ = in_.blocks.head_parameters;
  // FSDP gathers and reduces what the part's own parameters are.
  const ModelEnds ends = ends_of_model(in_.schedule, in_.parts, stage_);
  copies_embedding_ = !ends.embedding && shares_embedding(in_.model, in_.plan) &&
                      !shards_parameters(in_.model, in_.plan);
  if (copies_embedding_) head_and_copy_ += in_.blocks.embedding_parameters;
  for (std::int32_t chunk = 0; chunk < chunks; ++chunk) {
    parts_.push_back(list_parts(chunk));
    first_gather_.emplace_back(parts_.back().size(), 0);
  }
  completed_.assign(static_cast<std::size_t>(chunks), 0);
}

RankProgram StageWriter::write() {
  rank_.stage = stage_;
  const PartParameters parameters =
      stage_parameters(in_.model, in_.blocks, in_.schedule, in_.parts, in_.plan, stage_);
  rank_.parameters = {parameters.dense, parameters.expert};
  tensor_reduced_ = parameters.tensor_reduced;
  const PersistentStates states = persistent_memory(parameters, in_.plan, in_.stack);
  rank_.persistent.assign(states.begin(), states.end());
  if (in_.stack.memory.gradient_placeholders && !shards_parameters(in_.model, in_.plan)) {
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

std::vector<StageWriter::Part> StageWriter::list_parts(std::int32_t chunk) const {
  const BlockSet& blocks = in_.blocks;
  const std::size_t position = position_of(chunk);
  const LayerRange& range = in_.parts[position];
  std::vector<Part> parts;
  if (position == 0) parts.push_back({&blocks.embedding, &blocks.embedding_parameters, 0, false});
  for (std::int64_t i = 0; i < range.count; ++i) {
    const auto layer = static_cast<std::size_t>(range.first + i);
    const auto kind = static_cast<std::size_t>(blocks.kind_of_layer[layer]);
    const bool full = in_.plan.recompute == RecomputePolicy::Full;
    const bool recomputed =
        full && (in_.plan.recompute_layers == 0 || i < in_.plan.recompute_layers);
    const PartBlocks* of_layer = recomputed ? &blocks.recomputed[kind] : &blocks.kept[kind];
    parts.push_back({of_layer, &blocks.layer_parameters[kind], static_cast<std::int32_t>(layer),
                     of_layer->offloads && i + 1 < range.count});
  }
  if (position + 1 == in_.parts.size()) {
    const PartBlocks* head = blocks.recomputed_head ? &*blocks.recomputed_head : &blocks.head;
    parts.push_back({head, &head_and_copy_, static_cast<std::int32_t>(in_.model.layers), false});
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
  const std::vector<Op>& ops = around_.block(block).ops;
  rank_.ops += static_cast<std::uint32_t>(ops.size());
  return ops;
}

std::uint32_t StageWriter::call_around(BlockId block, std::int32_t layer, const Slot& slot,
                                       const std::vector<std::uint32_t>& on,
                                       const std::vector<PartId>& covered) {
  open_call(block, layer, slot);
  rank_.covered.insert(rank_.covered.end(), covered.begin(), covered.end());
  for (const std::uint32_t op : on) rank_.waits.push_back({rank_.calls.back().first_op, op});
  return rank_.ops - 1;
}

const StageWriter::Seams& StageWriter::seams_of(BlockId block) {
  if (seams_.size() <= block) seams_.resize(block + 1);
  std::optional<Seams>& seams = seams_[block];
  if (!seams) {
    const std::vector<Op>& ops = around_.block(block).ops;
    seams = {find_entries(ops, handed_over_), find_exits(ops)};
  }
  return *seams;
}

std::vector<std::uint32_t> StageWriter::ends() const {
  std::vector<std::uint32_t> ops;
  for (const Exit& exit : exits_) ops.push_back(exit.op);
  return ops;
}

void StageWriter::call_part(BlockId block, const Part& part, const Slot& slot) {
  const std::vector<Op>& ops = open_call(block, part.layer, slot);
  if (ops.empty()) return;
  const std::uint32_t first = rank_.calls.back().first_op;
  const Seams& seams = seams_of(block);
  for (const std::uint16_t entry : seams.entries) {
    for (const std::uint32_t on : pending_) rank_.waits.push_back({first + entry, on});
    for (const Exit& exit : exits_) {
      if (exit.stream != ops[entry].stream) rank_.waits.push_back({first + entry, exit.op});
    }
  }
  pending_.clear();
  exits_.clear();
  for (const std::uint16_t exit : seams.exits) exits_.push_back({first + exit, ops[exit].stream});
}

void StageWriter::receive(bool gradient, const Place& from, std::int64_t layer, const Slot& slot) {
  if (from.stage == stage_) return;
  const TensorRef tensor = gradient ? in_.blocks.hidden_gradient : in_.blocks.hidden;
  wait_for(call_around(around_.receive(tensor, gradient, from.stage - stage_),
                       static_cast<std::int32_t>(layer), slot, {}));
}

void StageWriter::send(bool gradient, const Place& to, std::int64_t layer, const Slot& slot) {
  if (to.stage == stage_) return;
  const TensorRef tensor = gradient ? in_.blocks.hidden_gradient : in_.blocks.hidden;
  const std::uint32_t op = call_around(around_.send(tensor, gradient, to.stage - stage_),
                                       static_cast<std::int32_t>(layer), slot, ends());
  if (kernels_wait_for_sends(in_.stack, in_.plan)) wait_for(op);
}

void StageWriter::write_forward(const Slot& slot) {
  const Place here{stage_, slot.chunk};
  const std::vector<Part>& parts = parts_of(slot.chunk);
  std::vector<std::uint32_t>& first_gather = first_gather_[static_cast<std::size_t>(slot.chunk)];
  const LayerRange layers = layers_of(slot.chunk);
  if (const auto from = in_.schedule.previous(here)) receive(false, *from, layers.first, slot);
  slot_gather_.assign(parts.size(), 0);
  slot_copy_.assign(parts.size(), 0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    gather_ahead(parts, i, false, slot);
    if (i > 1 && slot_copy_[i - 2] > 0) wait_for(slot_copy_[i - 2] - 1);
    if (first_gather[i] > 0) wait_for(std::exchange(first_gather[i], 0) - 1);
    const std::vector<std::uint32_t> before = ends();
    call_part(parts[i].blocks->forward, parts[i], slot);
    store_before(parts, i, before, slot);
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
  slot_copy_.assign(parts.size(), 0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const PartBlocks& blocks = *parts[i].blocks;
    gather_ahead(parts, i, true, slot);
    fetch_ahead(parts, i, slot);
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
  if (slot_gather_[index] > 0 || !reads(around_.block(reader), blocks.parameters)) return;
  const double element = storage_bytes(in_.plan.precision).value();
  const BlockId gather =
      around_.gather({blocks.parameters, 0}, Bytes(part.parameters->dense * element),
                     Bytes(part.parameters->expert * element));
  // Not before the part before it has been computed: that bounds the copies that are alive.
  slot_gather_[index] = call_around(gather, part.layer, slot, ends()) + 1;
}

}  // namespace shardwright
