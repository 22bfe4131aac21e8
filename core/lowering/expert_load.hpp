// How unevenly a learned router spreads tokens over the ranks that share the experts.
#pragma once

#include <cstdint>
#include <string>

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"

namespace shardwright {

// The expected maximum of `count` (at least 1) independent normal variables of mean 0 and standard
// deviation 1, as integral of x n phi(x) Phi(x)^(n-1).
double expected_maximum(std::int64_t count);

// Tokens of the expert-parallel rank that gets the most of them in a layer, over the mean: all wait
// for it. The loads of experts are taken to be independent and normal with the model's
// `load_variation`, so that a rank with k experts varies by that over the root of k. 1 where the
// router is forced to balance, and without expert parallelism.
double expert_load(const ModelSpec& model, const Plan& plan);

// That assumption in words, for a report; empty where none is made.
std::string load_assumption(const ModelSpec& model);

}  // namespace shardwright
