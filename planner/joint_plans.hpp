// The plans that a joint search evaluates: all of a small space, or those near given plans.
#pragma once

#include <cstdint>
#include <vector>

#include "core/spec/plan.hpp"
#include "core/spec/plan_check.hpp"
#include "planner/placed_plans.hpp"
#include "planner/plan_evaluation.hpp"
#include "planner/search.hpp"

namespace shardwright::planner {

// Plans that obey the rules and the constraints, and the numbers of those that do not.
class JointPlans {
 public:
  // `request` must outlive this object.
  JointPlans(const PlanRequest& request, std::int64_t most);

  // Adds a plan, whose split of the layers is open where `open_split` is true: one with each split.
  void add(Plan plan, bool open_split);
  void reject(PlanRule rule);

  // True once there are more than `most` plans, or so many more that counting them is work.
  bool is_full() const {
    return overflows_ || std::ssize(plans_) > most_ || counts_.space > 20 * most_;
  }
  // Counting is work, too.
  bool has_room_for(double more) const { return more <= 10.0 * static_cast<double>(most_); }
  void overflow() { overflows_ = true; }

  const std::vector<Plan>& plans() const { return plans_; }
  const Evaluation& counts() const { return counts_; }

 private:
  const PlanRequest& request_;
  std::int64_t most_;
  bool overflows_ = false;
  Evaluation counts_;
  std::vector<Plan> plans_;
};

// Adds every plan whose replicas' stages lie on several pools, and every plan whose groups of
// experts span replicas on several pools.
void add_all_joint(const PlanRequest& request, JointPlans& plans);

// Adds such plans on placements that fill the pools, with layers, microbatches and experts in
// proportion to the pools' speeds.
void add_joint_shapes(const PlanRequest& request, const PoolLayerCosts& known,
                      sim::ScheduleProfiles& profiles, JointPlans& plans);

// Adds those with the degrees of `seed`, on any number of stages near to its own.
void add_joint_near(const PlanRequest& request, const PoolLayerCosts& known, const Plan& seed,
                    sim::ScheduleProfiles& profiles, JointPlans& plans);

// The number of ranks of each part that a group of experts has.
std::vector<std::int64_t> expert_ranks_of_parts(const Plan& plan);

}  // namespace shardwright::planner
