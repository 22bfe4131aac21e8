#include "core/lowering/stage_writer.hpp"

#include <algorithm>
#include <utility>

#include "core/lowering/message_waits.hpp"
#include "core/lowering/stage_states.hpp"
#include "core/program/groups.hpp"

namespace shardwright {
namespace {

// The ops of a block through which it waits for what was issued before it: the first one on the
// compute stream, and each op of another stream that reads one of `handed_over` from outside of the
// block, unless it comes after such an op anyway.
std::vector<std::uint16_t> find_entries(const std::vector<Op>& ops,
                                        const std::vector<TensorId>& handed_over) {
  std::vector<std::uint16_t> entries;
  // True if it comes after an entry.
  std::vector<bool> after(ops.size(), false);
  EnumArray<Stream, bool> stream_after{};
  std::vector<TensorRef> written;
  for (std::uint16_t i = 0; i < static_cast<std::uint16_t>(ops.size()); ++i) {
    const Op& op = ops[i];
    const Stream stream = op.stream;
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
  EnumArray<Stream, std::optional<std::uint16_t>> last{};
  for (std::uint16_t i = 0; i < static_cast<std::uint16_t>(ops.size()); ++i) {
    for (const std::uint16_t on : ops[i].waits) {
      std::optional<std::uint16_t>& end = last[ops[on].stream];
      if (end == on) end.reset();
    }
    last[ops[i].stream] = i;
  }
  std::vector<std::uint16_t> exits;
  for (const std::optional<std::uint16_t>& end : last) {
    if (end) exits.push_back(*end);
  }
  return exits;
}

}  // namespace

// Ops are numbered plus one; 0: none.
class StageWriter::SlotCalls {
 public:
  SlotCalls(StageWriter& writer, const Slot& slot)
      : writer_(writer),
        slot_(slot),
        ops_(writer.parts_of(slot.chunk).size()),
        first_gather_(writer.first_gather_[static_cast<std::size_t>(slot.chunk)]) {}

  // Does not start before the part before it has been computed: that bounds the copies that are
  // alive.
  void gather(const Part& part, std::size_t place) {
    const PartBlocks& blocks = *part.part;
    if (!gathers_parameters(writer_.in_.blocks, blocks, slot_.phase)) return;
    const double element = storage_bytes(writer_.in_.plan.precision).value();
    const PartParameters& parameters = writer_.parameters_of(part);
    const BlockId gather =
        writer_.around_.gather({blocks.parameters, 0}, Bytes(parameters.dense_weights() * element),
                               Bytes(parameters.expert_weights() * element));
    ops_[place].gather = call(gather, part, writer_.ends());
  }

  void fetch(const Part& part, std::size_t place) {
    ops_[place].copy = call(part.part->fetch, part, writer_.ends());
  }

  void rerun(const Part& part, std::size_t place) {
    wait_for(std::exchange(ops_[place].gather, 0));
    writer_.call_part(part.part->recompute, part.layer, slot_);
  }

  void run(const Part& part, std::size_t place) {
    const PartBlocks& blocks = *part.part;
    wait_for(ops_[place].gather);
    switch (slot_.phase) {
      case SlotPhase::Forward:
        if (place >= kPartsBeforeStore) wait_for(ops_[place - kPartsBeforeStore].copy);
        wait_for(std::exchange(first_gather_[place], 0));
        if (writer_.offloads_) before_ = writer_.ends();
        writer_.call_part(blocks.forward, part.layer, slot_);
        break;
      case SlotPhase::Backward:
      case SlotPhase::BackwardInput:
        wait_for(ops_[place].copy);
        if (blocks.recomputed && part.group == 1)
          writer_.call_part(blocks.recompute, part.layer, slot_);
        writer_.call_part(
            slot_.phase == SlotPhase::Backward ? blocks.backward : blocks.backward_input,
            part.layer, slot_);
        break;
      case SlotPhase::BackwardWeight:
        writer_.call_part(blocks.backward_weight, part.layer, slot_);
        break;
    }
  }

  // The copy is issued, and the memory given back, after the part that it runs beside: until then
  // both parts hold theirs.
  void store(const Part& part, std::size_t place) {
    ops_[place].copy = call(part.part->store, part, before_);
  }

  void reduce(const Part& part, std::size_t) { writer_.reduce_part(part, slot_); }

 private:
  std::uint32_t call(BlockId block, const Part& part, const std::vector<std::uint32_t>& on) {
    return writer_.call_around(block, part.layer, slot_, on) + 1;
  }
  void wait_for(std::uint32_t op) {
    if (op > 0) writer_.wait_for(op - 1);
  }

  StageWriter& writer_;
  const Slot& slot_;
  // FSDP's gather of each place, and the copy of its activations to the host or back.
  struct PlaceOps {
    std::uint32_t gather = 0, copy = 0;
  };
  std::vector<PlaceOps> ops_;
  std::vector<std::uint32_t>& first_gather_;
  // The ends of the part before the one at hand.
  std::vector<std::uint32_t> before_;
};

StageWriter::StageWriter(const LoweringInput& input, std::int32_t stage, SurroundingBlocks& around)
    : in_(input), stage_(stage), around_(around) {
  const std::vector<std::int32_t>& positions =
      in_.schedule.position[static_cast<std::size_t>(stage)];
  handed_over_ = {in_.blocks.hidden.tensor, in_.blocks.hidden_gradient.tensor};
  for (const PartBlocks& part : in_.blocks.kept) {
    if (!part.offloads) continue;
    offloads_ = true;
    for (const TensorRef ref : around_.block(part.fetch).ops.front().writes)
      handed_over_.push_back(ref.tensor);
  }
  sharded_ = shards_parameters(in_.model, in_.plan);
  bucket_bytes_ = gradient_bucket_bytes(in_.model, in_.plan, in_.stack);
  ends_of_model_ = ends_of_model(positions, in_.parts.size());
  head_and_copy_ = in_.blocks.head_parameters;
  // FSDP gathers and reduces what the part's own parameters are.
  copies_embedding_ =
      shardwright::copies_embedding(in_.model, in_.plan, ends_of_model_) && !sharded_;
  if (copies_embedding_) head_and_copy_ += in_.blocks.embedding_parameters;
  parameters_ = stage_parameters(in_.model, in_.blocks, in_.schedule, in_.parts, in_.plan, stage_);
  for (const std::int32_t position : positions) {
    parts_.push_back(
        parts_of_chunk(in_.blocks, in_.plan, in_.parts, static_cast<std::size_t>(position)));
    first_gather_.emplace_back(parts_.back().size(), 0);
  }
  completed_.assign(positions.size(), 0);
}

RankProgram StageWriter::write() {
  rank_.stage = stage_;
  rank_.parameters = {parameters_.dense, parameters_.expert};
  const PersistentStates states = persistent_memory(parameters_, in_.plan, in_.stack);
  rank_.persistent.assign(states.begin(), states.end());
  if (in_.stack.memory.gradient_placeholders && !sharded_) {
    double largest_layer = 0.0;
    for (const PartParameters& layer : in_.blocks.layer_parameters)
      largest_layer = std::max(largest_layer, layer.dense);
    rank_.persistent.push_back(
        {MemoryCategory::Temporaries,
         gradient_placeholders(largest_layer, in_.blocks.embedding_parameters.dense,
                               ends_of_model_.head, in_.plan)});
  }
  const std::vector<Slot>& slots = in_.schedule.stages[static_cast<std::size_t>(stage_)];
  reserve_calls(slots);
  gather_beside_first_forward();
  for (const Slot& slot : slots) write_slot(slot);
  rank_.slot_calls.push_back(static_cast<std::uint32_t>(rank_.calls.size()));
  write_optimizer();
  gather_after_optimizer();
  return std::move(rank_);
}

// Room for about as many calls and waits as the slots write.
void StageWriter::reserve_calls(const std::vector<Slot>& slots) {
  std::size_t calls = 0;
  for (const Slot& slot : slots) calls += parts_of(slot.chunk).size() + 2;
  rank_.slot_calls.reserve(slots.size() + 1);
  rank_.calls.reserve(calls + calls / 8);
  rank_.waits.reserve(calls + calls / 8);
}

void StageWriter::write_slot(const Slot& slot) {
  rank_.slot_calls.push_back(static_cast<std::uint32_t>(rank_.calls.size()));
  const Place here{stage_, slot.chunk};
  const Place* previous = in_.schedule.previous(here);
  const Place* next = in_.schedule.next(here);
  const LayerRange layers = layers_of(slot.chunk);
  const std::int64_t end = layers.first + layers.count;
  const bool forward = slot.phase == SlotPhase::Forward, gradient = hands_gradient_on(slot.phase);
  if (forward && previous) receive(false, *previous, layers.first, slot);
  if (gradient && next) receive(true, *next, end, slot);
  walk_slot(slot.phase, parts_of(slot.chunk), {sharded_, parts_gathered_ahead(in_.stack, in_.plan)},
            SlotCalls(*this, slot));
  if (forward && next) send(false, *next, end, slot);
  if (gradient && previous) send(true, *previous, layers.first, slot);
  if (completes_gradients(slot.phase)) ++completed_[static_cast<std::size_t>(slot.chunk)];
}

std::size_t StageWriter::position_of(std::int32_t chunk) const {
  return static_cast<std::size_t>(
      in_.schedule.position[static_cast<std::size_t>(stage_)][static_cast<std::size_t>(chunk)]);
}

const PartParameters& StageWriter::parameters_of(const Part& part) const {
  const BlockSet& blocks = in_.blocks;
  if (part.part == &blocks.embedding) return blocks.embedding_parameters;
  if (part.layer == in_.model.layers) return head_and_copy_;
  return blocks.layer_parameters[static_cast<std::size_t>(
      blocks.kind_of_layer[static_cast<std::size_t>(part.layer)])];
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

const StageWriter::BorderOps& StageWriter::border_ops_of(BlockId block) {
  if (border_ops_.size() <= block) border_ops_.resize(block + 1);
  std::optional<BorderOps>& border = border_ops_[block];
  if (!border) {
    const std::vector<Op>& ops = around_.block(block).ops;
    border = {find_entries(ops, handed_over_), find_exits(ops)};
  }
  return *border;
}

const std::vector<std::uint32_t>& StageWriter::ends() {
  ends_.clear();
  for (const Exit& exit : exits_) ends_.push_back(exit.op);
  return ends_;
}

void StageWriter::call_part(BlockId block, std::int32_t layer, const Slot& slot) {
  const std::vector<Op>& ops = open_call(block, layer, slot);
  if (ops.empty()) return;
  const std::uint32_t first = rank_.calls.back().first_op;
  const BorderOps& border = border_ops_of(block);
  for (const std::uint16_t entry : border.entries) {
    for (const std::uint32_t on : pending_) rank_.waits.push_back({first + entry, on});
    for (const Exit& exit : exits_) {
      if (exit.stream != ops[entry].stream) rank_.waits.push_back({first + entry, exit.op});
    }
  }
  pending_.clear();
  exits_.clear();
  for (const std::uint16_t exit : border.exits) exits_.push_back({first + exit, ops[exit].stream});
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

}  // namespace shardwright
