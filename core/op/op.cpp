#include "core/op/op.hpp"

namespace shardwright {

Flop model_flop(const Work& work) {
  if (const auto* gemm = std::get_if<GemmWork>(&work)) return gemm->flop();
  if (const auto* attention = std::get_if<AttentionWork>(&work)) return attention->flop();
  return Flop();
}

}  // namespace shardwright
