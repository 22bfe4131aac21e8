// The number of tokens that experts work on, and how unevenly a learned router spreads them over
// the ranks that share the experts.
#pragma once

#include <string>

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"

namespace shardwright {

// Rows that experts work on over those that the router sends them: the capacity factor where rows
// are padded to it; the share that is not dropped, E[min(X, c)] of a normal X of mean 1 and
// deviation `load_variation`, where they are not; 1 without a capacity (GShard, arXiv
// 2006.16668, 3.2; Switch Transformer, arXiv 2101.03961, 2.2).
double expert_rows_ratio(const MoeSpec& moe);

// Rows of the expert-parallel rank that gets the most of them in a layer, over the mean: all wait
// for it. The loads of experts are taken to be independent and normal with the model's
// `load_variation` up to their capacity, so that a rank with k experts varies by the deviation of
// that over the root of k. 1 where the router is forced to balance or rows are padded, and without
// expert parallelism.
double expert_load(const ModelSpec& model, const Plan& plan);

// Returns that assumption in words, for a report; empty where none is made.
std::string load_assumption(const ModelSpec& model);

}  // namespace shardwright
