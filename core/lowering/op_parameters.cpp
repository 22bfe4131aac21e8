// Which parameters an op applies, or adds gradients to.
#include <string>
#include <string_view>
#include <vector>

#include "core/lowering/layer_writer.hpp"

namespace shardwright {
namespace {

// An op's name without what tells its passes apart: "attention.qkv.wgrad" is "attention.qkv".
std::string_view stem_of(std::string_view name) {
  for (const std::string_view pass : {".dgrad", ".wgrad", ".backward"}) {
    if (name.size() > pass.size() && name.substr(name.size() - pass.size()) == pass)
      return name.substr(0, name.size() - pass.size());
  }
  return name;
}

struct NamedParameters {
  std::string_view op;
  std::vector<std::string> parameters;
};

// The layers of decoders with grouped-query attention and dense feed-forward blocks; experts and
// latent attention have no executor yet.
const std::vector<NamedParameters>& layer_table() {
  static const std::vector<NamedParameters> table = {
      {"attention.norm", {"layers.*.attention_norm"}},
      {"attention.qkv",
       {"layers.*.attention.q_proj", "layers.*.attention.k_proj", "layers.*.attention.v_proj"}},
      {"attention.qkv.out.qk_norm", {"layers.*.attention.q_norm", "layers.*.attention.k_norm"}},
      {"attention.out", {"layers.*.attention.o_proj"}},
      {"attention.post_norm", {"layers.*.post_attention_norm"}},
      {"ffn.norm", {"layers.*.mlp_norm"}},
      {"ffn.down", {"layers.*.mlp.down_proj"}},
      {"ffn.post_norm", {"layers.*.post_mlp_norm"}},
      {"embedding.norm", {"embedding_norm"}},
      {"head.norm", {"final_norm"}},
  };
  return table;
}

}  // namespace

void LayerWriter::name_parameters(Op& op) const {
  const bool applies =
      op.kind == OpKind::Gemm || op.kind == OpKind::Norm || op.kind == OpKind::Embedding;
  if (!applies) return;
  const std::string_view stem = stem_of(op.name);
  if (stem == "embedding") {
    op.parameters = {"embedding"};
    if (model_.position_embeddings > 0) op.parameters.emplace_back("position_embedding");
  }
  if (stem == "head") op.parameters = {model_.tied_embeddings ? "embedding" : "head"};
  if (stem == "ffn.up") {
    op.parameters = {"layers.*.mlp.up_proj"};
    if (model_.mlp.gated) op.parameters.insert(op.parameters.begin(), "layers.*.mlp.gate_proj");
  }
  for (const NamedParameters& row : layer_table()) {
    if (row.op == stem) op.parameters = row.parameters;
  }
}

}  // namespace shardwright
