// Plans in the configuration formats of other training frameworks.
//
// Each format has its own file in this folder, with one function from a scenario to a PlanExport. A
// setting that a format cannot express is never omitted silently: it is a problem if the run would
// follow another plan, and a note if it is set elsewhere (by the training script, or by the
// framework itself). docs/formats/exports.md has the table of names.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/spec/scenario.hpp"

namespace shardwright::planner {

struct PlanExport {
  // The content of the file; meaningless if there are problems.
  std::string text;
  // The command lines that start the run: on each node, or once in a job of Slurm.
  std::string launch, slurm_launch;
  // True if the file contains the launch lines as comments.
  bool launch_in_text = false;
  // "FIELD VALUE: what the file does not set, and where it is set".
  std::vector<std::string> notes;
  // With JSON pointers into the plan file.
  std::vector<Problem> problems;

  void note(const std::string& field, const std::string& said) {
    notes.push_back(field + ": " + said);
  }
  void refuse(const std::string& field, std::string found, std::string expected) {
    problems.push_back({"/plan/" + field, std::move(found), std::move(expected)});
  }
};

// Writes a Bash array MEGATRON_ARGS for Megatron-LM's pretrain_gpt.py, with the model, and with the
// launch line as a comment. Data, tokenizer, learning rate and the length of the run belong to the
// launch script.
PlanExport megatron_arguments(const Scenario& scenario);

// Writes batch, ZeRO, number formats and tensor parallelism as DeepSpeed's JSON. Pipeline, context
// and expert parallelism belong to the training script. JSON has no comments, so that the launch
// line is not in the text.
PlanExport deepspeed_json(const Scenario& scenario);

// Writes a Bash array TORCHTITAN_FLAGS, with the launch line as a comment. The model is that of the
// function that --config names.
PlanExport torchtitan_flags(const Scenario& scenario);

struct ExportFormat {
  // "megatron", as the command names it.
  const char* name;
  // The name of the framework.
  const char* title;
  // A name for the file.
  const char* file;
  PlanExport (*write)(const Scenario& scenario);
};

inline constexpr std::array kExportFormats = {
    ExportFormat{"megatron", "Megatron-LM", "megatron_args.sh", megatron_arguments},
    ExportFormat{"deepspeed", "DeepSpeed", "ds_config.json", deepspeed_json},
    ExportFormat{"torchtitan", "torchtitan", "torchtitan_flags.sh", torchtitan_flags}};

// The nodes of a plan, and the processes on each: launchers start the same number on every node.
struct LaunchShape {
  std::int64_t nodes = 1, processes = 1;

  bool operator==(const LaunchShape&) const = default;
};

// Returns the fewest nodes that share the plan's ranks evenly; nodes x processes is the world size.
LaunchShape launch_shape(const ClusterSpec& cluster, const Plan& plan);

// Returns "torchrun --nnodes 2 --nproc-per-node 8 --node-rank $NODE_RANK … PROGRAM"; one node needs
// no rendezvous. Options as in https://docs.pytorch.org/docs/stable/elastic/run.html.
std::string torchrun_line(const LaunchShape& shape, const std::string& program);

// Returns "srun --nodes 2 --ntasks-per-node 1 torchrun … PROGRAM", for a batch script. The
// rendezvous of its processes runs on the first node of the job.
std::string slurm_line(const LaunchShape& shape, const std::string& program);

// Refuses schedules without a pipeline other than gradient accumulation, the only one that
// frameworks have there.
void check_accumulation(const Plan& plan, PlanExport& result);

// True if the axes along which the plan has more than one rank nest in the given order, innermost
// first.
bool nests_as(const Plan& plan, std::span<const Axis> order);

// "tp, cp, ep, dp, pp".
std::string shown(std::span<const Axis> order);

// Refuses replicas that agree otherwise than by an all-reduce of their gradients, which scripts set
// up (PyTorch's communication hooks, torchft), not flags.
void check_replicas(const Plan& plan, PlanExport& result);

// The nesting order of ranks in frameworks, innermost first.
inline constexpr std::array kUsualRankOrder = {Axis::Tensor, Axis::Context, Axis::Expert,
                                               Axis::Data, Axis::Pipeline};

// Refuses any other rank order.
void check_rank_order(const Plan& plan, PlanExport& result);

// Says which ranks belong on the nodes of which pool. Refuses pools whose nodes have different
// numbers of accelerators, which one launch line cannot start.
void note_pools(const Scenario& scenario, PlanExport& result);

// The overlap that the plan allows and the stack supports.
OverlapSwitches effective_overlap(const Scenario& scenario);

// Adds a note if the plan was made for another framework: its stack's family is none of `families`.
void note_foreign_stack(const StackSpec& stack, std::span<const std::string> families,
                        const std::string& framework, PlanExport& result);

// Returns one line without control characters: "llama3-8b on 16 x h100-sxm (dgx-h100), planned for
// megatron-core".
std::string title_of(const Scenario& scenario);

}  // namespace shardwright::planner
