// Appends ops to a block, together with the tensors that they read and write.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/program/program.hpp"
#include "core/program/shard_shape.hpp"

namespace shardwright {

// The tensors of a program, each known by its name.
class TensorTable {
 public:
  // The tensor of this name; added at the first call, the same at each later one.
  TensorId add(std::string_view name, MemoryCategory category, Bytes bytes,
               Lifetime lifetime = Lifetime::Scoped, bool per_microbatch = true);

  const std::vector<TensorSpec>& tensors() const { return tensors_; }

 private:
  std::vector<TensorSpec> tensors_;
};

// Fills Op::waits: an op that reads what an earlier op of the block wrote on another stream waits
// for it; so does one that writes over what an earlier op reads there (the buffers of a ring).
void derive_waits(std::vector<Op>& ops);

// Fills Op::frees of blocks that run in the given order for one layer and microbatch: after the
// last read of each value. A value that is written again before its next read dies between the two.
//   passed_on: written here for another layer or stage, which frees them
//   passed_in: written before these blocks; freed after their last read here
//   written_again: of these those that are freed after their last read in the first block, and
//              written again before the second
void derive_frees(std::span<Block* const> in_order, const std::vector<TensorSpec>& tensors,
                  std::span<const TensorRef> passed_on, std::span<const TensorRef> passed_in,
                  std::span<const TensorRef> written_again = {});

// FSDP: the gathered parameters of one part of the model, and their unsharded gradient.
struct GatheredParameters {
  TensorRef parameters, gradient;
};

// A value that holds what the ops follow from (model, plan, stack, sizes of one rank) and the
// settings of the ops to come. All copies append to the same ops, so a module that needs another
// setting for some of its ops gives them a copy with that setting.
struct BlockWriter {
  const ModelSpec& model;
  const Plan& plan;
  const StackSpec& stack;
  TensorTable& tensors;
  std::vector<Op>& ops;
  ShardShape shape;
  // The format in which GEMMs multiply.
  Precision precision = Precision::Bf16;
  Phase phase = Phase::Forward;
  // True if the next layer runs again behind this one and reads its output.
  bool hands_on_again = false;
  // Set if FSDP gathers the parameters of the part of the model that is written.
  std::optional<GatheredParameters> gathered;
  // Precedes the names of ops, tensors and parameters. It is empty for the model's own layers.
  std::string prefix;

  // True if the parameters of the model are frozen and adapters are trained.
  bool freezes() const { return plan.lora.has_value(); }
  // True if the plan's selective recomputation covers the module.
  bool reruns(RecomputeModule module) const;
  // The writer of what the backward pass runs again.
  BlockWriter again() const;

  // Lets the ops from number `first` on, which run again, wait for the gradient at which they
  // start, if a collective is at their front. A kernel is behind it on its stream anyway.
  void start_at_gradient(std::size_t first, TensorRef gradient) const;

  // Each of these appends one op and returns it. The reference is valid until the next op.
  Op& gemm(std::string_view name, const GemmWork& work, std::vector<TensorRef> reads,
           std::vector<TensorRef> writes) const;
  // A kernel limited by memory traffic, which counts `read` and `written` elements of activations.
  Op& memory_op(std::string_view name, OpKind kind, double read, double written,
                std::vector<TensorRef> reads, std::vector<TensorRef> writes,
                std::int64_t kernels = 1) const;
  Op& attention(std::string_view name, const AttentionWork& work, std::vector<TensorRef> reads,
                std::vector<TensorRef> writes) const;
  Op& collective(std::string_view name, OpKind kind, Group group, double elements,
                 std::vector<TensorRef> reads, std::vector<TensorRef> writes) const;
  // The gradient of a weight, which is computed in the phase BackwardWeight, so that zero-bubble
  // schedules can move it.
  Op& weight_gradient(std::string_view name, GemmWork work, std::vector<TensorRef> reads,
                      std::vector<std::string> parameters) const;

  // Names the parameters that `op` applies. With FSDP the op reads their gathered copy.
  Op& apply(Op& op, std::vector<std::string> parameters) const;
  // The full names of parameters of the layer that is written: "layers.*.attention.q_proj".
  std::vector<std::string> of_layer(std::vector<std::string> parameters) const;

  // The tensor of this name, which holds `elements` in the format of activations.
  TensorRef activation(std::string_view name, double elements) const;
  TensorRef temporary(std::string_view name, double elements) const;
  // An activation that only GEMMs read again. Stacks that multiply in FP8 may keep it in FP8.
  TensorRef gemm_input(std::string_view name, double elements) const;
  // The input of an activation function of experts, which they may keep like that, too.
  TensorRef expert_activation(std::string_view name, double elements) const;
  TensorRef tensor(std::string_view name, MemoryCategory category, double bytes) const;

 private:
  TensorRef activation_as(std::string_view name, double elements, bool may_cast) const;
  Op& append(std::string_view name, OpKind kind, Work work, std::vector<TensorRef> reads,
             std::vector<TensorRef> writes) const;
};

}  // namespace shardwright
