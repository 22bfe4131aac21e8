#include "executor/probe/probe_models.hpp"

#include <string>

namespace shardwright::executor {
namespace {

struct Sizes {
  const char* name;
  std::int64_t hidden, heads, kv_heads, ffn, vocab, seq_len, micro_batch;
};

// Chosen so that each edge of the GEMMs takes several sizes.
constexpr Sizes kLlamas[] = {{"probe-llama-64", 64, 4, 2, 192, 256, 64, 2},
                             {"probe-llama-128", 128, 4, 2, 384, 1024, 256, 1},
                             {"probe-llama-256", 256, 8, 4, 704, 512, 128, 2},
                             {"probe-llama-512", 512, 8, 8, 1408, 256, 64, 1}};
constexpr Sizes kGpts[] = {{"probe-gpt-96", 96, 6, 6, 384, 768, 128, 1},
                           {"probe-gpt-320", 320, 5, 5, 1280, 320, 64, 2}};
constexpr std::int64_t kLayers = 2, kMicrobatches = 2;

ModelSpec sized(const Sizes& sizes) {
  ModelSpec model;
  model.name = sizes.name;
  model.source = "made up for probing";
  model.layers = kLayers;
  model.hidden = sizes.hidden;
  model.vocab = sizes.vocab;
  model.max_seq_len = sizes.seq_len;
  model.attention.heads = sizes.heads;
  model.attention.kv_heads = sizes.kv_heads;
  model.attention.head_dim = sizes.hidden / sizes.heads;
  model.mlp.ffn_hidden = sizes.ffn;
  return model;
}

ModelSpec llama(const Sizes& sizes) {
  ModelSpec model = sized(sizes);
  model.family = "llama";
  return model;
}

ModelSpec gpt(const Sizes& sizes) {
  ModelSpec model = sized(sizes);
  model.family = "gpt2";
  model.attention.qkv_bias = model.attention.output_bias = true;
  model.mlp.activation = Activation::Gelu;
  model.mlp.gated = false;
  model.mlp.bias = true;
  model.norm = NormKind::LayerNorm;
  model.norm_bias = true;
  model.position = PositionKind::Learned;
  model.position_embeddings = sizes.seq_len;
  model.tied_embeddings = true;
  return model;
}

Plan plan_of(const Sizes& sizes) {
  Plan plan;
  plan.zero_stage = 0;
  plan.micro_batch = sizes.micro_batch;
  plan.global_batch = sizes.micro_batch * kMicrobatches;
  plan.seq_len = sizes.seq_len;
  plan.precision = Precision::Fp32;
  return plan;
}

}  // namespace

std::vector<Scenario> probe_scenarios(const ClusterSpec& machine) {
  std::vector<Scenario> scenarios;
  const auto add = [&](ModelSpec model, const Sizes& sizes) {
    scenarios.push_back({std::move(model), machine, *machine.stack, plan_of(sizes)});
  };
  for (const Sizes& sizes : kLlamas) add(llama(sizes), sizes);
  for (const Sizes& sizes : kGpts) add(gpt(sizes), sizes);
  return scenarios;
}

}  // namespace shardwright::executor
