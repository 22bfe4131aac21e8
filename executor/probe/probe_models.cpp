#include "executor/probe/probe_models.hpp"

#include <span>
#include <string>
#include <utility>

namespace shardwright::executor {
namespace {

struct Sizes {
  const char* name;
  std::int64_t hidden, heads, kv_heads, ffn, vocab, seq_len, micro_batch;
  std::int64_t layers = 2;
};

// The sizes give each dimension of the GEMMs several values.
constexpr Sizes kLlamas[] = {{"probe-llama-64", 64, 4, 2, 192, 256, 64, 2},
                             {"probe-llama-128", 128, 4, 2, 384, 1024, 256, 1},
                             {"probe-llama-256", 256, 8, 4, 704, 512, 128, 2},
                             {"probe-llama-512", 512, 8, 8, 1408, 256, 64, 1}};
constexpr Sizes kGpts[] = {{"probe-gpt-96", 96, 6, 6, 384, 768, 128, 1},
                           {"probe-gpt-320", 320, 5, 5, 1280, 320, 64, 2}};
// Few layers and small vocabularies: the host makes the initial values, which takes longer than the
// steps.
constexpr Sizes kGpuLlamas[] = {{"probe-llama-1024", 1024, 16, 8, 2816, 16'384, 1024, 4},
                                {"probe-llama-2048", 2048, 16, 4, 5632, 8192, 2048, 2},
                                {"probe-llama-3072", 3072, 24, 24, 8192, 4096, 1024, 2, 1},
                                {"probe-llama-4096", 4096, 32, 8, 14'336, 8192, 2048, 1, 1}};
constexpr Sizes kGpuGpts[] = {{"probe-gpt-1536", 1536, 16, 16, 6144, 8192, 1024, 2},
                              {"probe-gpt-2560", 2560, 32, 32, 10'240, 4096, 2048, 2, 1}};
constexpr std::int64_t kMicrobatches = 2;

ModelSpec sized(const Sizes& sizes) {
  ModelSpec model;
  model.name = sizes.name;
  model.source = "made up for probing";
  model.layers = sizes.layers;
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

Plan plan_of(const Sizes& sizes, Device device) {
  Plan plan;
  plan.zero_stage = 0;
  plan.micro_batch = sizes.micro_batch;
  plan.global_batch = sizes.micro_batch * kMicrobatches;
  plan.seq_len = sizes.seq_len;
  plan.precision = device == Device::Cuda ? Precision::Bf16 : Precision::Fp32;
  return plan;
}

}  // namespace

std::vector<Scenario> probe_scenarios(const ClusterSpec& machine, Device device) {
  const bool on_gpu = device == Device::Cuda;
  std::vector<Scenario> scenarios;
  const auto add = [&](ModelSpec model, const Sizes& sizes) {
    scenarios.push_back({std::move(model), machine, *machine.stack, plan_of(sizes, device)});
  };
  for (const Sizes& sizes : on_gpu ? std::span(kGpuLlamas) : std::span(kLlamas))
    add(llama(sizes), sizes);
  for (const Sizes& sizes : on_gpu ? std::span(kGpuGpts) : std::span(kGpts)) add(gpt(sizes), sizes);
  return scenarios;
}

}  // namespace shardwright::executor
