#include "core/lowering/block_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "core/program/groups.hpp"

namespace shardwright {
namespace {

// What tells layers apart, as far as their ops go: dense or sparse, windowed or full attention.
std::pair<bool, bool> layer_signature(const ModelSpec& model, std::int64_t layer) {
  return {model.is_sparse(layer), model.sliding_window_of(layer) > 0};
}

std::vector<Op> with_phase(const std::vector<Op>& ops, bool weight_gradients) {
  std::vector<Op> kept;
  std::copy_if(ops.begin(), ops.end(), std::back_inserter(kept), [&](const Op& op) {
    return (op.phase == Phase::BackwardWeight) == weight_gradients;
  });
  return kept;
}

using WriteOps = std::function<void(LayerWriter&)>;

// Builds the blocks of one part of the model.
class PartBuilder {
 public:
  PartBuilder(BlockSet& set, LayerWriter& writer, const TensorTable& tensors)
      : set_(set), writer_(writer), tensors_(tensors) {}

  // Adds the copies of what a part's forward pass keeps for its backward pass.
  void add_offload(const std::string& name, PartBlocks& part) {
    const std::vector<TensorRef> kept = kept_activations(set_.blocks[part.forward]);
    part.offloads = true;
    part.store = add({name + ".store", {offload(name + ".store", kept, {})}});
    part.fetch = add({name + ".fetch", {offload(name + ".fetch", {}, kept)}});
  }

  PartBlocks build(const std::string& name, const WriteOps& forward, const WriteOps& backward,
                   bool recomputed) {
    Block forward_block{name + ".forward", write(forward, Phase::Forward)};
    Block recompute_block{name + ".recompute",
                          recomputed ? write(forward, Phase::Recompute) : std::vector<Op>{}};
    Block whole{name + ".backward", write(backward, Phase::BackwardInput)};
    Block input{name + ".backward_input", with_phase(whole.ops, false)};
    Block weight{name + ".backward_weight", with_phase(whole.ops, true)};
    for (Block* block : {&forward_block, &recompute_block, &whole, &input, &weight})
      derive_waits(block->ops);
    free_in_order({&forward_block, &recompute_block, &input, &weight});
    free_in_order({&forward_block, &recompute_block, &whole});

    PartBlocks part;
    part.recomputed = recomputed;
    part.forward = add(std::move(forward_block));
    if (recomputed) part.recompute = add(std::move(recompute_block));
    part.backward = add(std::move(whole));
    part.backward_input = add(std::move(input));
    part.backward_weight = add(std::move(weight));
    part.parameters = writer_.parameters().tensor;
    part.parameter_gradient = writer_.parameter_gradient().tensor;
    return part;
  }

 private:
  std::vector<Op> write(const WriteOps& ops, Phase phase) {
    writer_.set_phase(phase);
    ops(writer_);
    return writer_.take();
  }

  void free_in_order(std::initializer_list<Block*> blocks) {
    const std::vector<Block*> order(blocks);
    std::vector<TensorRef> passed_on = {writer_.output(), writer_.input_gradient()};
    if (writer_.gathers_parameters()) passed_on.push_back(writer_.parameter_gradient());
    // The embedding writes its layer's input itself, for the first layer to free.
    const bool writes_input =
        std::any_of(order.front()->ops.begin(), order.front()->ops.end(), [&](const Op& op) {
          return std::find(op.writes.begin(), op.writes.end(), writer_.input()) != op.writes.end();
        });
    std::vector<TensorRef> passed_in = {writer_.output_gradient()};
    if (writes_input) {
      passed_on = {writer_.input()};
      passed_in = {writer_.input_gradient()};
      if (writer_.gathers_parameters()) passed_on.push_back(writer_.parameter_gradient());
    } else {
      passed_in.push_back(writer_.input());
    }
    derive_frees(order, tensors_.tensors(), passed_on, passed_in);
  }

  // Activations that the block writes for a later one of its part.
  std::vector<TensorRef> kept_activations(const Block& block) const {
    std::vector<TensorRef> kept;
    for (const Op& op : block.ops) {
      for (const TensorRef ref : op.writes) {
        const bool keeps = tensors_.tensors()[ref.tensor].category == MemoryCategory::Activations &&
                           ref != writer_.output();
        if (keeps && std::find(kept.begin(), kept.end(), ref) == kept.end()) kept.push_back(ref);
      }
      for (const TensorRef ref : op.frees) std::erase(kept, ref);
    }
    return kept;
  }

  // A copy of `stored` to the host, which frees them, or of `fetched` from there.
  Op offload(const std::string& name, const std::vector<TensorRef>& stored,
             const std::vector<TensorRef>& fetched) const {
    const auto bytes_of = [this](const std::vector<TensorRef>& refs) {
      Bytes sum;
      for (const TensorRef ref : refs) sum += tensors_.tensors()[ref.tensor].bytes;
      return sum;
    };
    Op op;
    op.name = name;
    op.kind = OpKind::Offload;
    op.stream = Stream::Offload;
    op.phase = stored.empty() ? Phase::BackwardInput : Phase::Forward;
    op.work = MemoryWork{bytes_of(stored), bytes_of(fetched), Flop(), 1};
    op.reads = op.frees = stored;
    op.writes = fetched;
    return op;
  }

  BlockId add(Block block) {
    set_.blocks.push_back(std::move(block));
    return static_cast<BlockId>(set_.blocks.size() - 1);
  }

  BlockSet& set_;
  LayerWriter& writer_;
  const TensorTable& tensors_;
};

// Ranks over which a column-split tensor is spread; further ones hold copies.
std::int64_t shards_of(const ParameterTensor& tensor, const Plan& plan) {
  return tensor.most_shards > 0 ? std::min(tensor.most_shards, plan.tp) : plan.tp;
}

// Sorts the layers into kinds: the index of the kind of each, and one layer of each kind.
std::vector<std::int64_t> sort_layers(const ModelSpec& model,
                                      std::vector<std::int32_t>& kind_of_layer) {
  std::vector<std::int64_t> example;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const auto same = std::find_if(example.begin(), example.end(), [&](std::int64_t other) {
      return layer_signature(model, other) == layer_signature(model, layer);
    });
    kind_of_layer.push_back(static_cast<std::int32_t>(same - example.begin()));
    if (same == example.end()) example.push_back(layer);
  }
  return example;
}

// Elements of the gradient that each tensor-parallel rank knows only a part of, although it holds
// all of the parameter (or of a share of it that others hold, too). As Megatron Core adds them up
// (finalize_model_grads.py); learned positions see the whole sequence.
double reduced_over_tensor(const ParameterTensor& tensor, const Plan& plan) {
  if (plan.tp == 1) return 0.0;
  const auto elements = static_cast<double>(tensor.elements());
  if (tensor.shard == ShardKind::Column && plan.tp > shards_of(tensor, plan)) return elements;
  const bool whole_sequence = tensor.place == ParameterPlace::Embedding && tensor.shape.size() > 1;
  const bool partial = tensor.shard == ShardKind::Replicated && plan.sequence_parallel;
  return partial && !whole_sequence ? elements : 0.0;
}

bool some_layers_kept(const Plan& plan) {
  return plan.recompute != RecomputePolicy::Full || plan.recompute_layers > 0;
}

}  // namespace

PartParameters& PartParameters::operator+=(const PartParameters& more) {
  dense += more.dense;
  expert += more.expert;
  tensor_reduced += more.tensor_reduced;
  return *this;
}

PartParameters rank_parameters(const std::vector<ParameterTensor>& tensors, const Plan& plan) {
  PartParameters parameters;
  for (const ParameterTensor& tensor : tensors) {
    const auto elements = static_cast<double>(tensor.elements());
    const auto tp = static_cast<double>(plan.tp), ep = static_cast<double>(plan.ep);
    parameters.tensor_reduced += reduced_over_tensor(tensor, plan);
    switch (tensor.shard) {
      case ShardKind::Replicated:
        parameters.dense += elements;
        break;
      case ShardKind::Column:
        parameters.dense += elements / static_cast<double>(shards_of(tensor, plan));
        break;
      case ShardKind::Row:
      case ShardKind::Vocabulary:
        parameters.dense += elements / tp;
        break;
      case ShardKind::ExpertColumn:
      case ShardKind::ExpertRow:
        parameters.expert += elements / (ep * static_cast<double>(plan.expert_tp));
        break;
      case ShardKind::ExpertReplicated:
        parameters.expert += elements / ep;
        break;
    }
  }
  return parameters;
}

BlockSet make_blocks(const ModelSpec& model, const Plan& plan, const StackSpec& stack) {
  BlockSet set;
  TensorTable tensors;
  LayerWriter writer(model, plan, stack, tensors);
  PartBuilder builder(set, writer, tensors);
  const bool gathers = shards_parameters(model, plan);
  const std::vector<std::int64_t> examples = sort_layers(model, set.kind_of_layer);
  for (std::size_t kind = 0; kind < examples.size(); ++kind) {
    const std::int64_t layer = examples[kind];
    const std::string name = examples.size() == 1 ? "layer" : fmt::format("layer{}", kind);
    set.layer_parameters.push_back(rank_parameters(layer_parameters(model, layer), plan));
    if (gathers) writer.use_gathered_parameters(name, set.layer_parameters.back().total());
    const WriteOps forward = [layer](LayerWriter& w) { w.forward(layer); };
    const WriteOps backward = [layer](LayerWriter& w) { w.backward(layer); };
    if (some_layers_kept(plan)) set.kept.push_back(builder.build(name, forward, backward, false));
    if (plan.offload_activations && !set.kept.empty()) builder.add_offload(name, set.kept.back());
    if (plan.recompute == RecomputePolicy::Full) {
      set.recomputed.push_back(builder.build(name + ".recomputed", forward, backward, true));
    }
  }
  set.embedding_parameters = rank_parameters(embedding_parameters(model), plan);
  set.head_parameters = rank_parameters(head_parameters(model), plan);
  if (trained_mtp_layers(model, plan) > 0)
    set.head_parameters += rank_parameters(mtp_parameters(model), plan);
  if (gathers) writer.use_gathered_parameters("embedding", set.embedding_parameters.total());
  set.embedding = builder.build(
      "embedding", [](LayerWriter& w) { w.embedding_forward(); },
      [](LayerWriter& w) { w.embedding_backward(); }, false);
  if (gathers) writer.use_gathered_parameters("head", set.head_parameters.total());
  const auto build_head = [&](const char* name, bool recomputes) {
    return builder.build(
        name, [](LayerWriter& w) { w.head_forward(); },
        [recomputes](LayerWriter& w) { w.head_backward(recomputes); }, false);
  };
  set.head = build_head("head", false);
  if (plan.recompute == RecomputePolicy::Full && trained_mtp_layers(model, plan) > 0)
    set.recomputed_head = build_head("head.recomputed", true);
  set.tensors = tensors.tensors();
  set.hidden = writer.input();
  set.hidden_gradient = writer.input_gradient();
  set.boundary_bytes = set.message_bytes = set.tensors[set.hidden.tensor].bytes;
  if (stack.scatters_messages && plan.tp > 1 && !plan.sequence_parallel)
    set.message_bytes = set.boundary_bytes / static_cast<double>(plan.tp);
  return set;
}

bool gathers_parameters(const BlockSet& blocks, const PartBlocks& part, SlotPhase phase) {
  if (phase == SlotPhase::BackwardWeight ||
      blocks.tensors[part.parameters].category != MemoryCategory::GatheredParameters)
    return false;
  const BlockId reader = phase == SlotPhase::Forward ? part.forward
                         : part.recomputed           ? part.recompute
                                                     : part.backward_input;
  const std::vector<Op>& ops = blocks.blocks[reader].ops;
  return std::any_of(ops.begin(), ops.end(), [&part](const Op& op) {
    return std::any_of(op.reads.begin(), op.reads.end(),
                       [&part](TensorRef ref) { return ref.tensor == part.parameters; });
  });
}

}  // namespace shardwright
