#include "core/lowering/block_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>

#include "core/lowering/modules/modules.hpp"
#include "core/lowering/selective_checkpoint.hpp"
#include "core/program/groups.hpp"
#include "core/spec/adapters.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/pools.hpp"

namespace shardwright {
namespace {

// The signature that tells layers apart, as far as their ops go: their parts, windowed or full
// attention.
std::pair<LayerParts, bool> layer_signature(const ModelSpec& model, std::int64_t layer) {
  const LayerParts parts = model.parts_of(layer);
  return {parts, parts.mixer == LayerMixer::Attention && model.sliding_window_of(layer) > 0};
}

std::vector<Op> with_phase(const std::vector<Op>& ops, bool weight_gradients) {
  std::vector<Op> kept;
  std::copy_if(ops.begin(), ops.end(), std::back_inserter(kept), [&](const Op& op) {
    return (op.phase == Phase::BackwardWeight) == weight_gradients;
  });
  return kept;
}

using WriteOps = std::function<void(const BlockWriter&)>;

// One part of the model: its ops, and the tensors that connect it to its neighbours.
struct PartOps {
  std::string name;
  WriteOps forward, backward;
  // Tensors that it writes for other parts, which free them.
  std::vector<TensorRef> passed_on;
  // Tensors of other parts that are freed after their last read here.
  std::vector<TensorRef> passed_in;
  // The parameters of a layer; of other parts empty.
  std::vector<ParameterTensor> parameters = {};
};

// How a part runs again before its backward pass, if it does.
struct Rerun {
  bool again = false;
  // Another layer of its group runs again before it and writes its input once more.
  bool input_again = false;
  // Another one runs again behind it.
  bool hands_on = false;
};

// What a module keeps for its backward pass.
struct OffloadedInput {
  OffloadModule module;
  std::string_view tensor;
};
constexpr std::array kOffloadedInputs = {
    OffloadedInput{OffloadModule::QkvLinear, "attention.norm.out"},
    OffloadedInput{OffloadModule::QkvLinear, "attention.q_down.out"},
    OffloadedInput{OffloadModule::QkvLinear, "attention.q_norm.out"},
    OffloadedInput{OffloadModule::QkvLinear, "attention.kv_down.out"},
    OffloadedInput{OffloadModule::QkvLinear, "attention.kv_norm.out"},
    OffloadedInput{OffloadModule::CoreAttention, "attention.qkv.out"},
    OffloadedInput{OffloadModule::CoreAttention, "attention.core.statistics"},
    OffloadedInput{OffloadModule::CoreAttention, "attention.probabilities"},
    OffloadedInput{OffloadModule::CoreAttention, "attention.probabilities.dropped"},
    OffloadedInput{OffloadModule::CoreAttention, "attention.dropout_mask"},
    OffloadedInput{OffloadModule::AttentionProjection, "attention.core.out"},
    OffloadedInput{OffloadModule::AttentionProjection, "attention.gated"},
    OffloadedInput{OffloadModule::MlpNorm, "hidden.middle"},
    OffloadedInput{OffloadModule::ExpertFc1, "experts.in"},
    OffloadedInput{OffloadModule::MoeActivation, "experts.up.out"}};

// Builds the blocks of the parts of a model.
class PartBuilder {
 public:
  PartBuilder(const ModelSpec& model, const Plan& plan, const StackSpec& stack, BlockSet& set)
      : set_(set),
        writer_{.model = model,
                .plan = plan,
                .stack = stack,
                .tensors = tensors_,
                .ops = ops_,
                .shape = shard_shape(model, plan),
                .precision = plan.precision,
                .hands_on_again = false,
                .gathered = {},
                .prefix = {}} {
    const Bytes bytes(writer_.shape.residual_elements() * writer_.shape.element);
    const TensorId hidden = tensors_.add("hidden", MemoryCategory::Activations, bytes);
    const TensorId gradient = tensors_.add("hidden.gradient", MemoryCategory::Temporaries, bytes);
    ends_ = {{hidden, 0}, {hidden, 1}, {gradient, 0}, {gradient, 1}};
  }

  // The tensors at the ends of a layer.
  const LayerEnds& ends() const { return ends_; }
  const std::vector<TensorSpec>& tensors() const { return tensors_.tensors(); }

  // Lets the next parts read gathered copies of these weights of the rank, with FSDP. A part
  // without weights gathers nothing.
  void gather_parameters(const std::string& name, const PartParameters& parameters) {
    writer_.gathered.reset();
    if (!shards_parameters(writer_.model, writer_.plan) || parameters.weights() <= 0.0) return;
    const Bytes element = storage_bytes(writer_.plan.precision);
    parameters_ = tensors_.add("parameters." + name, MemoryCategory::GatheredParameters,
                               element * parameters.weights(), Lifetime::Borrowed, false);
    parameter_gradient_ = tensors_.add("parameters.gradient." + name, MemoryCategory::Gradients,
                                       element * parameters.total(), Lifetime::Scoped, false);
    writer_.gathered = {{parameters_, 0}, {parameter_gradient_, 0}};
  }

  PartBlocks build(const PartOps& ops, Rerun rerun) {
    const std::string& name = ops.name;
    const bool recomputed = rerun.again;
    writer_.hands_on_again = rerun.hands_on;
    Block forward{name + ".forward", write(ops.forward, Phase::Forward)};
    Block recompute{name + ".recompute",
                    recomputed ? write(ops.forward, Phase::Recompute) : std::vector<Op>{}};
    Block whole{name + ".backward", write(ops.backward, Phase::BackwardInput)};
    if (recomputed && writer_.plan.recompute == RecomputePolicy::PerOp && !ops.parameters.empty()) {
      keep_selected_outputs(ops.parameters, writer_.plan, tensors_, forward.ops, recompute.ops);
      wait_for_recomputed_keys(whole.ops);
    }
    Block input{name + ".backward_input", with_phase(whole.ops, false)};
    Block weight{name + ".backward_weight", with_phase(whole.ops, true)};
    for (Block* block : {&forward, &recompute, &whole, &input, &weight}) derive_waits(block->ops);
    std::vector<TensorRef> passed_on = ops.passed_on;
    if (writer_.gathered) passed_on.push_back(writer_.gathered->gradient);
    for (const std::vector<Block*>& in_order :
         {std::vector<Block*>{&forward, &recompute, &input, &weight},
          {&forward, &recompute, &whole}})
      derive_frees(in_order, tensors(), passed_on, ops.passed_in,
                   rerun.input_again ? std::vector{ends_.in} : std::vector<TensorRef>{});

    PartBlocks part;
    part.recomputed = recomputed;
    part.forward = add(std::move(forward));
    if (recomputed) part.recompute = add(std::move(recompute));
    part.backward = add(std::move(whole));
    part.backward_input = add(std::move(input));
    part.backward_weight = add(std::move(weight));
    part.parameters = parameters_;
    part.parameter_gradient = parameter_gradient_;
    return part;
  }

  // Adds the copies of the activations that the forward pass keeps for the backward pass.
  void add_offload(const std::string& name, LayerParts parts, PartBlocks& part) {
    std::vector<TensorRef> kept = kept_activations(set_.blocks[part.forward]);
    std::erase_if(kept, [&](TensorRef ref) { return !may_offload(ref, parts); });
    kept = share_of(std::move(kept));
    if (kept.empty()) return;
    part.offloads = true;
    part.store = add({name + ".store", {offload(name + ".store", kept, {})}});
    part.fetch = add({name + ".fetch", {offload(name + ".fetch", {}, kept)}});
  }

 private:
  std::vector<Op> write(const WriteOps& ops, Phase phase) {
    writer_.phase = phase;
    ops(writer_);
    return std::exchange(ops_, {});
  }

  // Activations that the block writes for a later one of its part.
  std::vector<TensorRef> kept_activations(const Block& block) const {
    std::vector<TensorRef> kept;
    for (const Op& op : block.ops) {
      for (const TensorRef ref : op.writes) {
        const bool keeps =
            tensors()[ref.tensor].category == MemoryCategory::Activations && ref != ends_.out;
        if (keeps && std::find(kept.begin(), kept.end(), ref) == kept.end()) kept.push_back(ref);
      }
      for (const TensorRef ref : op.frees) std::erase(kept, ref);
    }
    return kept;
  }

  // True if the plan offloads the inputs of all modules, or of one that reads the tensor.
  bool may_offload(TensorRef ref, LayerParts parts) const {
    const OffloadModuleSet modules = writer_.plan.offload_modules;
    if (modules.empty()) return true;
    const std::string& name = tensors()[ref.tensor].name;
    return std::ranges::any_of(kOffloadedInputs, [&](const OffloadedInput& input) {
      if (!modules.contains(input.module) || input.tensor != name) return false;
      // A norm inside of a projection is no module of its own.
      return input.module != OffloadModule::MlpNorm || parts.ffn == LayerFfn::Experts ||
             !writer_.stack.fusion.norm_in_projection;
    });
  }

  Bytes bytes_of(const std::vector<TensorRef>& refs) const {
    Bytes sum;
    for (const TensorRef ref : refs) sum += tensors()[ref.tensor].bytes;
    return sum;
  }

  // The plan's share of the tensors that are kept: whole ones, the largest first, as they fit.
  std::vector<TensorRef> share_of(std::vector<TensorRef> kept) const {
    const double ratio = writer_.plan.offload_ratio;
    if (ratio >= 1.0) return kept;
    Bytes left = bytes_of(kept) * ratio;
    std::stable_sort(kept.begin(), kept.end(), [this](TensorRef first, TensorRef second) {
      return tensors()[first.tensor].bytes > tensors()[second.tensor].bytes;
    });
    std::vector<TensorRef> share;
    for (const TensorRef ref : kept) {
      if (tensors()[ref.tensor].bytes > left) continue;
      left -= tensors()[ref.tensor].bytes;
      share.push_back(ref);
    }
    return share;
  }

  // Copies `stored` to the host and frees them, or `fetched` from there.
  Op offload(const std::string& name, const std::vector<TensorRef>& stored,
             const std::vector<TensorRef>& fetched) const {
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
  TensorTable tensors_;
  std::vector<Op> ops_;
  BlockWriter writer_;
  LayerEnds ends_;
  // The gathered parameters of the last part that has any.
  TensorId parameters_ = 0, parameter_gradient_ = 0;
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

// True for the norm of each head of queries or keys, which a rank applies to its own heads.
bool is_head_norm(const ParameterTensor& tensor) {
  return tensor.shard == ShardKind::Replicated &&
         (tensor.name.ends_with("attention.q_norm.weight") ||
          tensor.name.ends_with("attention.k_norm.weight"));
}

// Elements of the gradient that each tensor-parallel rank knows only a part of, although it holds
// all of the parameter (or of a share of it that others hold, too). As Megatron Core adds them up
// (finalize_model_grads.py); learned positions see the whole sequence.
double reduced_over_tensor(const ParameterTensor& tensor, const Plan& plan) {
  if (plan.tp == 1) return 0.0;
  const auto elements = static_cast<double>(tensor.elements());
  if (tensor.shard == ShardKind::Column && plan.tp > shards_of(tensor, plan)) return elements;
  const bool whole_sequence = tensor.place == ParameterPlace::Embedding && tensor.shape.size() > 1;
  // What all ranks hold of an adapter, they use on a part of its input or output.
  const bool partial =
      tensor.shard == ShardKind::Replicated &&
      (plan.sequence_parallel || tensor.place == ParameterPlace::Adapter || is_head_norm(tensor));
  return partial && !whole_sequence ? elements : 0.0;
}

// The weights of a part, of which only its adapters are trained if the plan has any.
PartParameters part_parameters(const std::vector<ParameterTensor>& weights,
                               const std::vector<ParameterTensor>& adapters, const Plan& plan) {
  if (!plan.lora) return rank_parameters(weights, plan);
  PartParameters parameters = rank_parameters(adapters, plan);
  for (const ParameterTensor& weight : weights) {
    const PartParameters held = rank_parameters({weight}, plan);
    const std::string_view name(weight.name);
    const bool narrow = is_quantized(*plan.lora, name.substr(0, name.rfind('.')));
    const double share = narrow ? kNf4Bytes / storage_bytes(plan.precision).value() : 1.0;
    parameters.frozen_dense += held.dense * share;
    parameters.frozen_expert += held.expert * share;
  }
  return parameters;
}

std::vector<ParameterTensor> layer_adapters(const ModelSpec& model, const Plan& plan,
                                            std::int64_t layer) {
  if (!plan.lora) return {};
  return adapter_parameters(model, *plan.lora, layer);
}

bool some_layers_kept(const Plan& plan) {
  return !plan.reruns_layers() || plan.recompute_layers > 0 || plan.recompute_interval > 1 ||
         !plan.stage_recompute_layers.empty();
}

}  // namespace

PartParameters& PartParameters::operator+=(const PartParameters& more) {
  dense += more.dense;
  expert += more.expert;
  mean_expert += more.mean_expert;
  tensor_reduced += more.tensor_reduced;
  frozen_dense += more.frozen_dense;
  frozen_expert += more.frozen_expert;
  return *this;
}

PartParameters rank_parameters(const std::vector<ParameterTensor>& tensors, const Plan& plan) {
  PartParameters parameters;
  for (const ParameterTensor& tensor : tensors) {
    const auto elements = static_cast<double>(tensor.elements());
    const auto tp = static_cast<double>(plan.tp), ep = static_cast<double>(plan.ep);
    // The ranks that share a tensor of experts, whose first dimension these are, if each held as
    // many of them as this one.
    const double ranks = numbers_experts(plan)
                             ? static_cast<double>(tensor.shape[0]) /
                                   static_cast<double>(experts_of_rank(plan, tensor.shape[0]))
                             : ep;
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
        parameters.expert += elements / (ranks * static_cast<double>(plan.expert_tp));
        parameters.mean_expert += elements / (ep * static_cast<double>(plan.expert_tp));
        break;
      case ShardKind::ExpertReplicated:
        parameters.expert += elements / ranks;
        parameters.mean_expert += elements / ep;
        break;
    }
  }
  return parameters;
}

BlockSet make_blocks(const ModelSpec& model, const Plan& plan, const StackSpec& stack) {
  BlockSet set;
  PartBuilder builder(model, plan, stack, set);
  const LayerEnds ends = builder.ends();
  const bool recomputes = plan.reruns_layers();
  // Builds a layer or the head, which follows the last layer.
  const auto build = [&](const std::string& name, const WriteOps& forward, const WriteOps& backward,
                         Rerun rerun, const std::vector<ParameterTensor>& parameters) {
    return builder.build({name,
                          forward,
                          backward,
                          {ends.out, ends.in_gradient},
                          {ends.out_gradient, ends.in},
                          parameters},
                         rerun);
  };
  const std::vector<std::int64_t> examples = sort_layers(model, set.kind_of_layer);
  for (std::size_t kind = 0; kind < examples.size(); ++kind) {
    const std::int64_t layer = examples[kind];
    const std::string name = examples.size() == 1 ? "layer" : fmt::format("layer{}", kind);
    std::vector<ParameterTensor> parameters = layer_parameters(model, layer);
    const std::vector<ParameterTensor> adapters = layer_adapters(model, plan, layer);
    set.layer_parameters.push_back(part_parameters(parameters, adapters, plan));
    parameters.insert(parameters.end(), adapters.begin(), adapters.end());
    builder.gather_parameters(name, set.layer_parameters.back());
    const WriteOps forward = [&](const BlockWriter& w) { write_layer_forward(w, layer, ends); };
    const WriteOps backward = [&](const BlockWriter& w) { write_layer_backward(w, layer, ends); };
    if (some_layers_kept(plan)) {
      set.kept.push_back(build(name, forward, backward, {}, parameters));
    }
    if (plan.offload_activations && !set.kept.empty())
      builder.add_offload(name, model.parts_of(layer), set.kept.back());
    if (recomputes) {
      set.recomputed.push_back(
          build(name + ".recomputed", forward, backward, {.again = true}, parameters));
    }
    if (!recomputes || plan.recompute_group == 1) continue;
    set.grouped.first.push_back(
        build(name + ".first", forward, backward, {.again = true, .hands_on = true}, parameters));
    set.grouped.middle.push_back(build(name + ".middle", forward, backward,
                                       {.again = true, .input_again = true, .hands_on = true},
                                       parameters));
    set.grouped.last.push_back(
        build(name + ".last", forward, backward, {.again = true, .input_again = true}, parameters));
  }
  const bool predicts_more = trained_mtp_layers(model, plan) > 0;
  set.embedding_parameters = part_parameters(embedding_parameters(model), {}, plan);
  set.head_parameters = part_parameters(head_parameters(model), {}, plan);
  if (predicts_more) set.head_parameters += rank_parameters(mtp_parameters(model), plan);
  builder.gather_parameters("embedding", set.embedding_parameters);
  set.embedding = builder.build(
      {"embedding",
       [&](const BlockWriter& w) { write_embedding_forward(w, ends.in); },
       [&](const BlockWriter& w) { write_embedding_backward(w, ends.in, ends.in_gradient); },
       {ends.in},
       {ends.in_gradient}},
      {});
  builder.gather_parameters("head", set.head_parameters);
  const auto build_head = [&](const char* name, bool mtp_recomputed) {
    return build(
        name, [&](const BlockWriter& w) { write_head_forward(w, ends); },
        [&](const BlockWriter& w) { write_head_backward(w, ends, mtp_recomputed); }, {}, {});
  };
  set.head = build_head("head", false);
  if (recomputes && predicts_more) set.recomputed_head = build_head("head.recomputed", true);
  set.tensors = builder.tensors();
  set.hidden = ends.in;
  set.hidden_gradient = ends.in_gradient;
  set.boundary_bytes = set.message_bytes = set.tensors[set.hidden.tensor].bytes;
  if (stack.communication.scatters_messages && plan.tp > 1 && !plan.sequence_parallel)
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
