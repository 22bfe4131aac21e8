// The searches that the benchmarks of the planner run: two published trainings, and the example of
// the README.
#pragma once

#include <cstdint>
#include <string>

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "planner/search.hpp"

namespace shardwright::planner {

inline PlanRequest megatron_request(const std::string& model, const std::string& cluster) {
  PlanRequest request;
  request.model = load_model(model);
  request.cluster = load_cluster(cluster);
  request.stack = load_stack("megatron-core");
  return request;
}

inline PlanRequest gpt3_on_4096_a100() {
  PlanRequest request = megatron_request("gpt3-175b", "dgx-a100");
  request.gpus = 4096;
  request.global_batch = 1536;
  request.seq_len = 2048;
  return request;
}

inline PlanRequest llama_405b_on_16384_h100() {
  PlanRequest request = megatron_request("llama3.1-405b", "grand-teton-h100-roce");
  request.gpus = 16384;
  request.global_batch = 2048;
  request.seq_len = 8192;
  return request;
}

inline PlanRequest llama_70b_on_512_h100() {
  PlanRequest request = megatron_request("llama3-70b", "dgx-h100");
  request.gpus = 512;
  request.global_batch = 1024;
  request.seq_len = 8192;
  return request;
}

}  // namespace shardwright::planner
