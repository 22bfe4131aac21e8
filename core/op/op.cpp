#include "core/op/op.hpp"

#include <array>

namespace shardwright {
namespace {

constexpr std::array kOpNames = {
    "gemm",          "grouped_gemm",   "attention",  "softmax",        "norm",
    "rope",          "activation",     "dropout",    "residual",       "embedding",
    "router",        "permute",        "loss",       "cast",           "gradient_accumulation",
    "gradient_norm", "optimizer",      "offload",    "host_optimizer", "all_reduce",
    "all_gather",    "reduce_scatter", "all_to_all", "broadcast",      "ring_shift",
    "send",          "receive"};
constexpr std::array kStreamNames = {
    "compute",         "tensor_parallel",  "context_parallel", "expert_parallel",
    "gradient_reduce", "parameter_gather", "send_activation",  "receive_activation",
    "send_gradient",   "receive_gradient", "offload"};
constexpr std::array kPhaseNames = {"forward", "recompute", "backward_input", "backward_weight",
                                    "optimizer"};
constexpr std::array kGroupNames = {"tensor",
                                    "context",
                                    "expert",
                                    "expert_tensor",
                                    "data",
                                    "expert_data",
                                    "shard_inner",
                                    "shard_outer",
                                    "expert_shard_inner",
                                    "expert_shard_outer",
                                    "pipeline",
                                    "embedding_tie",
                                    "model_parallel",
                                    "mirror"};
static_assert(kOpNames.size() == static_cast<std::size_t>(OpKind::Receive) + 1);
static_assert(kStreamNames.size() == kStreams);
static_assert(kPhaseNames.size() == kPhases);
static_assert(kGroupNames.size() == kGroups);

}  // namespace

const char* name_of(OpKind kind) {
  return kOpNames[static_cast<std::size_t>(kind)];
}
const char* name_of(Stream stream) {
  return kStreamNames[static_cast<std::size_t>(stream)];
}
const char* name_of(Phase phase) {
  return kPhaseNames[static_cast<std::size_t>(phase)];
}
const char* name_of(Group group) {
  return kGroupNames[static_cast<std::size_t>(group)];
}

Flop model_flop(const Work& work) {
  if (const auto* gemm = std::get_if<GemmWork>(&work)) return gemm->flop();
  if (const auto* attention = std::get_if<AttentionWork>(&work)) return attention->flop();
  return Flop();
}

}  // namespace shardwright
