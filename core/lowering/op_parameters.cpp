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
  std::vector<std::string> parameters;  // of a layer
};

// A layer's, and what a layer that predicts a further token has besides. Gates as in gated blocks.
const std::vector<NamedParameters>& layer_table() {
  static const std::vector<NamedParameters> table = {
      {"attention.norm", {"attention_norm"}},
      {"attention.qkv", {"attention.q_proj", "attention.k_proj", "attention.v_proj"}},
      {"attention.qkv.out.qk_norm", {"attention.q_norm", "attention.k_norm"}},
      {"attention.q_down", {"attention.q_a_proj"}},
      {"attention.q_norm", {"attention.q_a_norm"}},
      {"attention.q_up", {"attention.q_b_proj"}},
      {"attention.q", {"attention.q_proj"}},
      {"attention.kv_down", {"attention.kv_a_proj"}},
      {"attention.kv_norm", {"attention.kv_a_norm"}},
      {"attention.kv_up", {"attention.kv_b_proj"}},
      {"attention.out", {"attention.o_proj"}},
      {"attention.post_norm", {"post_attention_norm"}},
      {"ffn.norm", {"mlp_norm"}},
      {"ffn.up", {"mlp.gate_proj", "mlp.up_proj"}},
      {"ffn.down", {"mlp.down_proj"}},
      {"ffn.post_norm", {"post_mlp_norm"}},
      {"router", {"moe.router"}},
      {"experts.up", {"moe.experts.gate_proj", "moe.experts.up_proj"}},
      {"experts.down", {"moe.experts.down_proj"}},
      {"shared_experts.up", {"moe.shared_experts.gate_proj", "moe.shared_experts.up_proj"}},
      {"shared_experts.down", {"moe.shared_experts.down_proj"}},
      {"shared_experts.gate", {"moe.shared_expert_gate"}},
      {"embedding_norm", {"embedding_norm"}},
      {"hidden_norm", {"hidden_norm"}},
      {"join", {"join_proj"}},
      {"norm", {"final_norm"}},
  };
  return table;
}

bool is_gate(const std::string& parameter) {
  return parameter.ends_with(".gate_proj");
}

}  // namespace

std::vector<std::string> LayerWriter::parameters_of(const std::string& name, OpKind kind) const {
  const bool applies = kind == OpKind::Gemm || kind == OpKind::GroupedGemm ||
                       kind == OpKind::Norm || kind == OpKind::Embedding;
  if (!applies) return {};
  const std::string_view stem = stem_of(name);
  if (stem == "head") return {model_.tied_embeddings ? "embedding" : "head"};
  if (stem == "head.norm") return {"final_norm"};
  if (stem == "embedding.norm") return {"embedding_norm"};
  if (stem == "lookup") return {"embedding"};
  if (stem == "embedding") {
    if (model_.position_embeddings > 0) return {"embedding", "position_embedding"};
    return {"embedding"};
  }
  const std::string layer = prefix_.empty() ? "layers.*." : prefix_;
  std::vector<std::string> parameters;
  for (const NamedParameters& row : layer_table()) {
    if (row.op != stem) continue;
    for (const std::string& parameter : row.parameters) {
      if (model_.mlp.gated || !is_gate(parameter)) parameters.push_back(layer + parameter);
    }
  }
  return parameters;
}

}  // namespace shardwright
