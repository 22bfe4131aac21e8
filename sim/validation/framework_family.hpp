// What an unknown training framework is built like.
#pragma once

#include <optional>
#include <string_view>

namespace shardwright::sim {

// The family of stacks, "megatron", "pytorch" or "deepspeed", that a framework belongs to by its
// name in any spelling; none for a name that is not known. Megatron-like ones launch fused kernels
// from a hand-written model cut by tensor and pipeline parallelism, PyTorch-like ones shard with
// FSDP, DeepSpeed-like ones with ZeRO.
std::optional<std::string_view> framework_family(std::string_view framework);

// True for Alpa, which finds tensor and pipeline degrees by itself (arXiv 2201.12023).
bool searches_cuts(std::string_view framework);

}  // namespace shardwright::sim
