// Requests and scenarios of shipped profiles.
#pragma once

#include <string>
#include <vector>

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "planner/search.hpp"

namespace shardwright::planner {

inline PlanRequest request_for(const std::string& model, std::int64_t gpus,
                               std::int64_t global_batch, std::int64_t seq_len) {
  PlanRequest request;
  request.model = load_model(model);
  request.cluster = load_cluster("dgx-h100");
  request.stack = load_stack("megatron-core");
  request.gpus = gpus;
  request.global_batch = global_batch;
  request.seq_len = seq_len;
  return request;
}

inline PlanRequest llama_on_one_node() {
  return request_for("llama3-8b", 8, 64, 8192);
}

inline Scenario scenario_of(const std::string& model, const std::string& stack, const Plan& plan) {
  return {load_model(model), load_cluster("dgx-h100"), load_stack(stack), plan};
}

// Replaces the fixed constraints: "tp=2,4".
inline void fix(PlanRequest& request, const std::vector<const char*>& constraints) {
  request.constraints.fixed.clear();
  for (const char* text : constraints)
    request.constraints.fixed.push_back(parse_constraint(text, "--fix"));
}

}  // namespace shardwright::planner
