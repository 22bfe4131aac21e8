#include "core/spec/model_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/spec/model_library.hpp"
#include "tests/core/spec/model_samples.hpp"
#include "tests/thrown.hpp"

namespace shardwright {
namespace {

using nlohmann::json;

ModelSpec written_and_read(const ModelSpec& model) {
  return read_model(parse_json(to_json(model).dump(), "round trip"), "round trip");
}

RC_GTEST_PROP(ModelJson, RandomModelsSurviveTheRoundTrip, ()) {
  const ModelSpec model = any_model();
  RC_ASSERT(written_and_read(model) == model);
}

TEST(ModelJson, ShippedModelsSurviveTheRoundTripAndNameTheirSource) {
  for (const std::string& name : shipped_models()) {
    const ModelSpec model = load_model(name);
    EXPECT_EQ(written_and_read(model), model) << name;
    EXPECT_EQ(model.name, name);
    EXPECT_FALSE(model.source.empty()) << name;
  }
}

// Small, valid, and with every part that a row of the table below breaks.
json valid_model() {
  return json::parse(R"({
    "schema": "shardwright/model", "version": 1, "name": "m", "layers": 4, "hidden": 64,
    "vocab": 100, "max_seq_len": 128,
    "attention": {"heads": 4, "kv_heads": 2, "head_dim": 16},
    "mlp": {"ffn_hidden": 128, "activation": "silu", "gated": true},
    "moe": {"experts": 8, "top_k": 2, "expert_ffn": 32, "first_dense_layers": 1}
  })");
}

struct Malformed {
  // A merge patch on the valid model.
  const char* patch;
  std::vector<std::string> pointers;
};

TEST(ModelJson, TheModelThatTheTableBreaksIsValid) {
  EXPECT_EQ(read_model(valid_model(), "test").moe->experts, 8);
}

TEST(ModelJson, MalformedModelsAreRefusedAtThePointerOfTheProblem) {
  const std::vector<Malformed> table = {
      {R"({"schema": "shardwright/cluster"})", {"/schema"}},
      {R"({"schema": 7})", {"/schema"}},
      {R"({"version": 2})", {"/version"}},
      {R"({"version": null})", {"/version"}},
      {R"({"name": null})", {"/name"}},
      {R"({"layers": null})", {"/layers"}},
      {R"({"layers": 0})", {"/layers"}},
      {R"({"layers": -4})", {"/layers"}},
      {R"({"layers": "4"})", {"/layers"}},
      {R"({"layers": 4.5})", {"/layers"}},
      {R"({"layers": 99999999})", {"/layers"}},
      {R"({"hidden": true})", {"/hidden"}},
      {R"({"hidden": 18446744073709551615})", {"/hidden"}},
      {R"({"vocab": []})", {"/vocab"}},
      {R"({"hiden": 64})", {"/hiden"}},
      {R"({"attention": null})", {"/attention"}},
      {R"({"attention": 3})", {"/attention"}},
      {R"({"attention": {"heads": 0}})", {"/attention/heads"}},
      {R"({"attention": {"kv_heads": 3}})", {"/attention/kv_heads"}},
      {R"({"attention": {"kv_heads": 8}})", {"/attention/kv_heads"}},
      {R"({"attention": {"kind": "latent"}})", {"/attention/kind"}},
      {R"({"attention": {"kv_lora_rank": 8}})", {"/attention/kv_lora_rank"}},
      {R"({"attention": {"kind": "multi-head-latent", "kv_heads": null, "head_dim": 7,
           "kv_lora_rank": 8, "qk_nope_head_dim": 4, "qk_rope_head_dim": 4, "v_head_dim": 4}})",
       {"/attention/head_dim"}},
      {R"({"attention": {"full_attention_interval": 2}})", {"/attention/full_attention_interval"}},
      {R"({"mlp": {"activation": "swiglu"}})", {"/mlp/activation"}},
      {R"({"mlp": {"gated": "yes"}})", {"/mlp/gated"}},
      {R"({"mlp": {"ffn_hiden": 128}})", {"/mlp/ffn_hiden"}},
      {R"({"moe": {"top_k": 9}})", {"/moe/top_k"}},
      {R"({"moe": {"experts": 0}})", {"/moe/experts"}},
      {R"({"moe": {"first_dense_layers": 4}})", {"/moe/first_dense_layers"}},
      {R"({"moe": {"shared_experts": 1}})", {"/moe/shared_expert_ffn"}},
      {R"({"moe": {"shared_expert_gate": true}})", {"/moe/shared_expert_gate"}},
      {R"({"moe": {"capacity_factor": -1}})", {"/moe/capacity_factor"}},
      {R"({"moe": {"capacity_factor": 0.1}})", {"/moe/capacity_factor"}},
      {R"({"moe": {"pads_to_capacity": true}})", {"/moe/pads_to_capacity"}},
      {R"({"norm": "layer"})", {"/norm"}},
      {R"({"norm_bias": true})", {"/norm_bias"}},
      {R"({"norms_per_layer": 3})", {"/norms_per_layer"}},
      {R"({"norms_per_layer": 1})", {"/norms_per_layer"}},
      {R"({"position": "learned"})", {"/position_embeddings"}},
      {R"({"position_embeddings": 128})", {"/position_embeddings"}},
      {R"({"rotary_share": 0})", {"/rotary_share"}},
      {R"({"rope_theta": 0.5, "norm_epsilon": 0})", {"/norm_epsilon", "/rope_theta"}},
      {R"({"dropout": 1.5})", {"/dropout"}},
      {R"({"aliases": "m"})", {"/aliases"}},
      {R"({"aliases": ["a", 3]})", {"/aliases/1"}},
      {R"({"layers": 10000, "hidden": 4000000, "moe": {"experts": 65536, "expert_ffn": 4000000}})",
       {""}},
      {R"({"layers": 0, "mlp": {"gate": true}, "dropout": -1})",
       {"/dropout", "/layers", "/mlp/gate"}},
  };
  for (const Malformed& row : table) {
    json value = valid_model();
    value.merge_patch(json::parse(row.patch));
    EXPECT_THAT(problems_of([&value] { read_model(value, "test"); }),
                testing::UnorderedElementsAreArray(row.pointers))
        << row.patch;
  }
}

TEST(ModelJson, OtherThanObjectsAreRefused) {
  for (const char* text : {"null", "[]", "3", "\"llama3-8b\""}) {
    EXPECT_THROW(read_model(json::parse(text), "test"), InputError) << text;
  }
}

TEST(ModelJson, AMisspeltKeyIsAnsweredWithTheNearestOne) {
  json value = valid_model();
  value["tied_embedings"] = true;
  EXPECT_THAT(thrown_by([&value] { read_model(value, "test"); }),
              testing::HasSubstr("a known key (did you mean \"tied_embeddings\"?)"));
}

}  // namespace
}  // namespace shardwright
