// A plan in the words of another training framework.
//
// Each format has a file of its own here with one function from a scenario to a PlanExport. What a
// format cannot say is never left out in silence: it is a problem where the run would be another
// plan, and a note where somebody else says it (the training script, the framework's own choice).
// docs/formats/exports.md has the table of names.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/spec/scenario.hpp"

namespace shardwright::planner {

struct PlanExport {
  std::string text;                // the file; it means nothing if there are problems
  std::string launch;              // command line that starts the run on each node
  bool launch_in_text = false;     // the file holds it, as a comment
  std::vector<std::string> notes;  // "FIELD VALUE: what the file does not say, and who does"
  std::vector<Problem> problems;   // JSON pointers into the plan file

  void note(const std::string& field, const std::string& said) {
    notes.push_back(field + ": " + said);
  }
  void refuse(const std::string& field, std::string found, std::string expected) {
    problems.push_back({"/plan/" + field, std::move(found), std::move(expected)});
  }
};

// Refuses schedules without a pipeline that differ from the accumulation of gradients, which is all
// that frameworks do there.
void check_accumulation(const Plan& plan, PlanExport& result);

// True if the axes along which the plan has more than one rank nest in the given order, innermost
// first.
bool nests_as(const Plan& plan, std::span<const Axis> order);

// "tp, cp, ep, dp, pp".
std::string shown(std::span<const Axis> order);

// The order in which frameworks nest their ranks, innermost first.
inline constexpr std::array kUsualRankOrder = {Axis::Tensor, Axis::Context, Axis::Expert,
                                               Axis::Data, Axis::Pipeline};

// Refuses any other order.
void check_rank_order(const Plan& plan, PlanExport& result);

// Overlap that both the plan allows and the stack is able to do.
OverlapSwitches effective_overlap(const Scenario& scenario);

// What the plan recomputes. Selective recomputation does nothing where the stack's attention is
// fused (docs/models/lowering.md), while frameworks would recompute all of it; that is noted.
RecomputePolicy effective_recompute(const Scenario& scenario, PlanExport& result);

// Notes that the plan was made for another framework, if its stack's family is none of `families`.
void note_foreign_stack(const StackSpec& stack, std::span<const std::string> families,
                        const std::string& framework, PlanExport& result);

// "llama3-8b on 16 x h100-sxm (dgx-h100), planned for megatron-core": one line without control
// characters, whatever the names hold.
std::string title_of(const Scenario& scenario);

}  // namespace shardwright::planner
