#include <array>

#include "core/program/program.hpp"

namespace shardwright {
namespace {

constexpr std::array kMemoryNames = {
    "weights",      "master_weights",      "gradients", "optimizer_states",      "activations",
    "temporaries",  "gathered_parameters", "logits",    "communication_buffers", "context",
    "fragmentation"};
static_assert(kMemoryNames.size() == kMemoryCategories);

}  // namespace

const char* name_of(MemoryCategory category) {
  return kMemoryNames[static_cast<std::size_t>(category)];
}

}  // namespace shardwright
