// The costs of layers that several searches share: other batches and other numbers of accelerators
// cut layers in the same ways.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/spec/cluster_spec.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"
#include "sim/step/layer_costs.hpp"

namespace shardwright::planner {

// For one model, cluster and stack. Safe for use by several threads.
class LayerCostCache {
 public:
  // sim::layer_costs of `cut`, computed once for all cuts that cost the same: the batch does not
  // matter, nor do further whole scale-up domains where the pipeline axis is the outermost, since
  // groups within a stage then lie alike.
  std::shared_ptr<const sim::LayerCosts> of(const ModelSpec& model, const ClusterSpec& cluster,
                                            const StackSpec& stack, const Plan& cut);

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const sim::LayerCosts>> known_;
};

}  // namespace shardwright::planner
