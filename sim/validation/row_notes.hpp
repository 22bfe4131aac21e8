// The few facts of a published measurement that stand only in its free text.
//
// Sources describe their runs in prose; the phrases that are looked for here name a technique that
// has no field of its own. A note that lacks them changes nothing, and so does one that denies them
// (negation.hpp). Whoever changes a scenario by one of them says so in the row's `filled_in`.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "core/spec/plan.hpp"

namespace shardwright::sim {

std::string lower_case(std::string_view text);

// True if `text` holds `phrase`, whatever the case.
bool says(std::string_view text, std::string_view phrase);

// … or any of the phrases.
bool says_any(std::string_view text, std::initializer_list<std::string_view> phrases);

// True if `text` is one of the words.
bool is_any(std::string_view text, std::initializer_list<std::string_view> words);

// Each expert works on a fixed number of tokens: what exceeds an even share is dropped.
bool notes_say_dropped_tokens(std::string_view notes);

// "Capacity factor 1.25": of an even share, what an expert takes at most. Below 0: it takes all.
std::optional<double> capacity_factor_in(std::string_view notes);

// The router is forced to spread tokens evenly, or drops what exceeds an even share.
bool notes_say_balanced_routing(std::string_view notes);

// Attention ran as one kernel, or as several.
bool notes_say_fused_attention(std::string_view notes);
bool notes_say_no_fused_attention(std::string_view notes);

// How context parallelism exchanges, in words or as Megatron Core's cp_comm_type; Ulysses where the
// text names a ring, too.
std::optional<ContextParallelKind> context_parallel_in(std::string_view text);

// Queries, keys and values come from latent vectors (DeepSeek-V2).
bool notes_say_latent_attention(std::string_view notes);

// Attention and feed-forward work on the same input, after one norm: "parallel transformer block",
// "parallel attention and MLP", as GPT-J has it (github.com/kingoflolz/mesh-transformer-jax).
bool notes_say_parallel_block(const std::string& notes);

// ZeRO-1 in the words of Megatron-LM.
bool notes_say_distributed_optimizer(std::string_view notes);

// Pipeline ranks hold several parts of the model each.
bool notes_say_interleaved(std::string_view notes);

// Tensor-parallel collectives are not hidden behind their GEMMs.
bool notes_say_no_tensor_overlap(std::string_view notes);

// All-to-all of experts runs beside compute.
bool notes_say_expert_overlap(std::string_view notes);
bool notes_say_no_expert_overlap(std::string_view notes);

// Tokens cross the network once for all experts of a node.
bool notes_say_tokens_once_per_node(std::string_view notes);

// Trained without its multi-token-prediction layers.
bool notes_say_no_further_tokens(std::string_view notes);

// The whole step is launched as CUDA graphs; graphs of single modules save little.
bool notes_say_cuda_graphs(std::string_view notes);

// Attention and routers are launched as CUDA graphs.
bool notes_say_partial_graphs(std::string_view notes);

// PyTorch ran in eager mode.
bool notes_say_not_compiled(std::string_view notes);

// … or with torch.compile, without which it has no asynchronous tensor parallelism either.
bool notes_say_compiled(std::string_view notes);

// PyTorch's tensor-parallel collectives are cut up and hidden behind their GEMMs.
bool notes_say_asynchronous_tensor_parallel(std::string_view notes);

// Degree of tensor parallelism inside of experts: "ETP=2", or the last of
// "TP/PP/EP/CP/ETP=2/8/32/1/1".
std::optional<std::int64_t> expert_tensor_parallel_in(std::string_view notes);

// Experts are cut by tensor parallelism as attention is.
bool notes_say_experts_as_attention(std::string_view notes);

// The weights that FP8 multiplies are kept in FP8.
bool notes_say_fp8_weights(std::string_view notes);

// LoRA: only small matrices beside the weights are trained. Also of names of models and stacks.
bool says_low_rank_adapters(std::string_view text);

// How much of something waits on the host.
enum class OffloadNote : std::uint8_t { None, Part, Whole };

OffloadNote activation_offload_in(std::string_view notes);

// Of the optimizer's states.
OffloadNote optimizer_offload_in(std::string_view notes);

// The parameters wait on the host, too.
bool notes_say_parameters_offloaded(std::string_view notes);

// … which lie on NVMe disks.
bool notes_say_states_on_disk(std::string_view notes);

}  // namespace shardwright::sim
