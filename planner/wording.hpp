// Sentences that the command and the window both show, from the values that the planner returns.
// They name no option of the command line and no widget of the window.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/compare.hpp"
#include "planner/explain.hpp"
#include "planner/remedy.hpp"
#include "planner/search.hpp"
#include "planner/sweep.hpp"

namespace shardwright::planner {

// What a cluster's accelerators are called: "GPU", "TPU", "CPU rank", or "accelerator" for several
// kinds.
const char* accelerator_word(const ClusterSpec& cluster);

// A text that calls accelerators GPUs, with that word in place of "GPU".
std::string with_accelerator(std::string text, std::string_view word);

// The name of a field without its unit: "zero stage", "cluster, node, nic, bandwidth".
std::string field_text(const InputDifference& input);

// "Plan 1 is compute-bound: GEMMs take 68 % of the step and attention 19 %; …", and how much faster
// it would be with more of the resources that matter. `plan` begins the sentence.
std::string limit_text(const std::string& plan, const Explanation& explanation);

// The comparison of two plans and the reason for their difference; `first` and `second` name them.
std::string verdict_text(const Comparison& comparison, const std::string& first,
                         const std::string& second);

// "31,000 plans checked, 240 simulated, best step 3.2 s, 1,203 not ruled out yet".
std::string progress_text(const SearchProgress& progress);

// "No plan fits 500 GPUs: …"; on several pools, of the one that `none` is of.
std::string no_plan_text(const PlanRequest& request, const NoFeasiblePlan& none);

// The changes of a job on this cluster that belong together: "1,024 GPUs and a global batch of
// 2,048".
std::string remedy_text(const std::vector<Remedy>& remedies, const ClusterSpec& cluster);

// The reason why a sweep of the bandwidth of a link that the cluster lacks has no points.
std::string lacking_link_text(SweepAxis axis, const ClusterSpec& cluster);

// A value of a sweep: "1,024", or in gigabytes per second "6.25".
std::string value_text(SweepAxis axis, double value);

// The reason why no plan runs at a point of a sweep, or why the fullest stage of its plan does not
// fit into the memory of its pool; empty if it fits.
std::string obstacle_text(const SweepPoint& point, const ClusterSpec& cluster);

// The words for a member of a plan that a problem names by its JSON pointer: "zero stage" for
// "/plan/zero_stage" and for "/zero_stage".
std::string plan_field_text(std::string_view pointer);

// The knee of a sweep that has ended and its reason, or the reason why there is none, as a
// sentence.
std::string knee_text(const Sweep& sweep, const ClusterSpec& cluster);

// "the share of exposed data-parallel communication in the step grows from 4 % on 8 accelerators to
// 31 % on 512".
std::string cause_text(const KneeCause& cause);

// "the plan of the smallest size, 8 accelerators, recomputes activations for lack of memory, …".
std::string cause_text(const SuperlinearCause& cause);

// "26 of the 82 hardware and software figures used are estimates".
std::string estimates_text(const FigureCounts& counts);

// The meaning of a bisection bandwidth.
inline constexpr const char* kBisectionMeaning =
    "The rate at which one half of a job's accelerators can send to the other half, by the links' "
    "datasheets.";

}  // namespace shardwright::planner
