// The costs of layers, shared by several searches: other batches and numbers of accelerators cut
// layers in the same ways.
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

// A cache for one model, cluster and stack. Several threads may use it.
class LayerCostCache {
 public:
  // Returns sim::layer_costs of `cut`, computed once for all cuts with the same cost. The batch
  // does not matter. If the pipeline axis is the outermost and all accelerators are equally fast,
  // neither do further whole scale-up domains, because the groups within a stage are then placed
  // alike.
  std::shared_ptr<const sim::LayerCosts> of(const ModelSpec& model, const ClusterSpec& cluster,
                                            const StackSpec& stack, const Plan& cut);

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const sim::LayerCosts>> known_;
};

}  // namespace shardwright::planner
