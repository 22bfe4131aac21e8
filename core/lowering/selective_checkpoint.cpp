#include "core/lowering/selective_checkpoint.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/lowering/block_set.hpp"

namespace shardwright {
namespace {

bool keeps_output(const Op& op) {
  switch (op.kind) {
    case OpKind::Attention:
    case OpKind::ReduceScatter:
    case OpKind::AllToAll:
      return true;
    default:
      break;
  }
  // Context parallelism exchanges for the attention kernel alone.
  return op.stream == Stream::ContextParallel;
}

// Elements on this rank of the weight that an op names "layers.*.attention.q_proj".
double weight_elements(const std::vector<ParameterTensor>& parameters, const Plan& plan,
                       const std::string& named) {
  const std::string ending = named.substr(named.rfind('*') + 1) + ".weight";
  const auto found =
      std::find_if(parameters.begin(), parameters.end(),
                   [&](const ParameterTensor& each) { return each.name.ends_with(ending); });
  SHARDWRIGHT_CHECK(found != parameters.end(), "a GEMM of the layer applies its weights");
  return rank_parameters({*found}, plan).total();
}

// Keeps the outputs of `share` of the columns of a GEMM.
void keep_columns(double share, TensorTable& tensors, std::vector<Op>& forward, Op& again) {
  const auto first = std::find_if(forward.begin(), forward.end(),
                                  [&](const Op& op) { return op.name == again.name; });
  SHARDWRIGHT_CHECK(first != forward.end(), "what is recomputed has run before");
  const Bytes bytes = tensors.tensors()[again.writes.front().tensor].bytes;
  const TensorRef kept{
      tensors.add(again.name + ".kept", MemoryCategory::Activations, bytes * share), 0};
  first->writes.push_back(kept);
  again.reads.push_back(kept);
  auto& work = std::get<GemmWork>(again.work);
  work.n = std::llround(static_cast<double>(work.n) * (1.0 - share));
}

}  // namespace

void keep_selected_outputs(const std::vector<ParameterTensor>& parameters, const Plan& plan,
                           TensorTable& tensors, std::vector<Op>& forward,
                           std::vector<Op>& recompute) {
  std::vector<Op> again;
  std::int64_t products = 0;
  for (auto op = recompute.begin(); op != recompute.end(); ++op) {
    if (keeps_output(*op)) continue;
    // Products without weights, as those of unfused attention, are batched: bmm, not mm.
    if (op->kind == OpKind::Gemm && !op->parameters.empty()) {
      double kept = 0.0, all = 0.0;
      for (const std::string& parameter : op->parameters) {
        const double elements = weight_elements(parameters, plan, parameter);
        all += elements;
        if (++products % 2 == 1) kept += elements;
      }
      // Nothing reads a partial product whose reduced output is kept.
      const auto next = std::next(op);
      const bool is_reduced = next != recompute.end() && next->kind == OpKind::ReduceScatter &&
                              next->reads == op->writes;
      if (kept == all || is_reduced) continue;
      if (kept > 0.0) keep_columns(kept / all, tensors, forward, *op);
    }
    again.push_back(std::move(*op));
  }
  recompute = std::move(again);
}

void wait_for_recomputed_keys(std::vector<Op>& backward) {
  const auto exchange = std::find_if(backward.begin(), backward.end(), [](const Op& op) {
    return op.stream == Stream::ContextParallel;
  });
  if (exchange != backward.end()) exchange->after_kernels = true;
}

}  // namespace shardwright
