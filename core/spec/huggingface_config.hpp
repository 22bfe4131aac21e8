// The common part of the Hugging Face model types, for the readers of the single types.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/json_reader.hpp"
#include "core/spec/model_spec.hpp"

namespace shardwright::huggingface {

// Spellings of one setting in the configuration files of different model types.
using Keys = std::vector<std::string>;

extern const Keys kLayersKeys;
extern const Keys kHiddenKeys;
extern const Keys kHeadsKeys;
extern const Keys kKvHeadsKeys;
extern const Keys kFfnKeys;
extern const Keys kSequenceKeys;
extern const Keys kActivationKeys;
extern const Keys kNormEpsilonKeys;
extern const Keys kRopeThetaKeys;

// The spelling that the file uses; the first one if it uses none.
const std::string& spelling(const ObjectReader& config, const Keys& keys);

// True if the key is there at all, even if it is null.
bool mentions(ObjectReader& config, const std::string& key);

// The keys that a model type's own files have for its sizes: errors name them where a file has
// none.
struct SizeKeys {
  std::string layers = kLayersKeys.front();
  std::string hidden = kHiddenKeys.front();
  std::string heads = kHeadsKeys.front();
};

// Reads layers, hidden, vocab and attention.heads, each of which is required.
ModelSpec read_sizes(ObjectReader& config, const SizeKeys& usual = {});

// The width of a head where the configuration has no key for it: hidden / heads. A remainder is a
// problem.
std::int64_t even_head_dim(ObjectReader& config, const ModelSpec& model);

// The activation function, or `fallback` where the file names none.
Activation read_activation(ObjectReader& config, const std::string& fallback);

// The width of the feed-forward block; four times `hidden` where the file has none.
std::int64_t read_ffn_or_four_hidden(ObjectReader& config, const ModelSpec& model);

// Learned position embeddings for sequences of max_seq_len tokens, after `offset` unused rows.
void learn_positions(ModelSpec& model, std::int64_t offset);

// The share of a head that is rotated: under `key`, in newer files inside of rope_parameters.
double read_rotary_share(ObjectReader& config, const std::string& key, double fallback);

// Reads the base of the rotary angles (rope_theta, GPT-NeoX: rotary_emb_base; in newer files inside
// of rope_parameters) and their scaling (rope_scaling, rope_parameters).
void read_rotary_angles(ObjectReader& config, ModelSpec& model, double fallback);

// Reads rms_norm_eps, layer_norm_epsilon or layer_norm_eps.
double read_norm_epsilon(ObjectReader& config, double fallback);

// The values that a configuration class fills in for missing keys. A size of 0: the key is
// required, or for kv_heads equal to the heads, for head_dim hidden / heads.
struct Defaults {
  std::int64_t max_seq_len = 2048;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  bool tied = false;
  std::string activation = "silu";
  double norm_epsilon = 1e-6;
  double rope_theta = 10'000.0;
};

// Reads what all model types in Llama's line have, into a model whose sizes are read already, or
// into a new one: heads of keys and values, the feed-forward width, norms, rotary positions.
ModelSpec complete_gated(ObjectReader& config, ModelSpec model, const Defaults& defaults);
ModelSpec read_gated(ObjectReader& config, const Defaults& defaults);

// One bias switch for all projections of attention.
void read_attention_bias(ObjectReader& config, ModelSpec& model);

// Each k-th layer sees everything, the others have a window: `interval` and `window` where the file
// has none. `layer_types` may list the layers instead.
void read_alternating_window(ObjectReader& config, ModelSpec& model, std::int64_t interval,
                             std::int64_t window = 4096);

// ModelSpec::layer_pattern from a list with the name of each layer's kind, which `letters`
// translates; `fallback` where the file has no list. The pattern is as short as repetition allows.
std::string read_layer_pattern(ObjectReader& config, const std::string& key,
                               const std::map<std::string, char>& letters,
                               const std::string& fallback);

// The pointer in a configuration at `base` of a field of ModelSpec ("/attention/kv_heads"), for
// check_model.
std::string field_pointer(const ObjectReader& config, const std::string& base,
                          const std::string& field);

// One reader per model type.
ModelSpec read_gpt2(ObjectReader& config);
ModelSpec read_gpt_neox(ObjectReader& config);
ModelSpec read_opt(ObjectReader& config);
ModelSpec read_bloom(ObjectReader& config);
ModelSpec read_mpt(ObjectReader& config);
ModelSpec read_falcon(ObjectReader& config);
ModelSpec read_starcoder2(ObjectReader& config);
ModelSpec read_nemotron(ObjectReader& config);

ModelSpec read_llama(ObjectReader& config);
ModelSpec read_mistral(ObjectReader& config);
ModelSpec read_mixtral(ObjectReader& config);
ModelSpec read_qwen2(ObjectReader& config);
ModelSpec read_qwen2_moe(ObjectReader& config);
ModelSpec read_qwen3(ObjectReader& config);
ModelSpec read_qwen3_moe(ObjectReader& config);
ModelSpec read_gemma(ObjectReader& config);
ModelSpec read_gemma2(ObjectReader& config);
ModelSpec read_gemma3_text(ObjectReader& config);
ModelSpec read_phi3(ObjectReader& config);
ModelSpec read_olmo2(ObjectReader& config);
ModelSpec read_olmo3(ObjectReader& config);
ModelSpec read_granite(ObjectReader& config);
ModelSpec read_cohere(ObjectReader& config);
ModelSpec read_cohere2(ObjectReader& config);
ModelSpec read_seed_oss(ObjectReader& config);

ModelSpec read_gpt_oss(ObjectReader& config);
ModelSpec read_granitemoe(ObjectReader& config);
ModelSpec read_llama4_text(ObjectReader& config);
ModelSpec read_minimax_m2(ObjectReader& config);
ModelSpec read_ernie4_5_moe(ObjectReader& config);
ModelSpec read_qwen3_next(ObjectReader& config);
ModelSpec read_nemotron_h(ObjectReader& config);

ModelSpec read_deepseek_v2(ObjectReader& config);
ModelSpec read_deepseek_v3(ObjectReader& config);
ModelSpec read_deepseek_v32(ObjectReader& config);
ModelSpec read_glm4_moe(ObjectReader& config);

}  // namespace shardwright::huggingface
