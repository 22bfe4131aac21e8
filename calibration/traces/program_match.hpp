// The kernels of a trace beside the ops of a plan's program.
//
// Matrix products are matched by shape, place and order, attention by direction and order,
// communication by kind, bytes and order; several products that share two sizes and add up in the
// third are one op that the framework has not fused. Kernels that are limited by memory traffic are
// told apart by the words in their names and by their place, and compared by kind, because
// frameworks fuse them in other ways than the plan's stack.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "calibration/traces/roofline.hpp"
#include "calibration/traces/trace.hpp"
#include "core/base/enum_names.hpp"
#include "core/base/units.hpp"
#include "core/op/op.hpp"
#include "core/spec/precision.hpp"

namespace shardwright::calibration {

// An op of one rank's step with its predicted time.
struct PlannedOp {
  std::string name;
  OpKind kind = OpKind::Gemm;
  Phase phase = Phase::Forward;
  Precision precision = Precision::Bf16;
  Work work;
  Seconds start, duration;
};

// The step of a rank as a plan predicts it.
struct PlannedStep {
  std::int64_t stage = 0;
  // In the order of issue.
  std::vector<PlannedOp> ops;
  Seconds step;
  // Communication beside no kernel, waits for the host, and waits for other stages.
  Seconds exposed, host, bubble;
};

// Ops of one name, phase and work; or all that are of one kind which memory traffic limits, with
// the work of all together. Counts and times are those of a step, the mean over the compared steps.
struct MatchedOp {
  std::string name;
  OpKind kind = OpKind::Gemm;
  Phase phase = Phase::Forward;
  Precision precision = Precision::Bf16;
  Work work;
  // Ops of the program; those that have a partner; the kernels of the partners.
  double ops = 0.0, matched = 0.0, kernels = 0.0;
  // `planned` is the predicted time of all ops; the others are of the ops that have a partner.
  Seconds planned{}, predicted{}, measured{};
  // The exposed time of communication: no kernel computes meanwhile.
  Seconds predicted_exposed{}, measured_exposed{};
  // The times of the partners, one by one.
  std::vector<Seconds> times{};
  // The format of most of the partners, where the trace tells it; of products alone.
  std::optional<Precision> measured_precision{};
  // By the peak of that format, or else of the op's. None if no device was given.
  std::optional<Roofline> roofline{};
  // The predicted time of ops that a recording of the forward pass alone cannot have.
  Seconds unrecorded{};
  // The partners as calls of the framework: a product with the kernels that finish it is one, and
  // so are the kernels of one function that runs over lists of tensors.
  double calls = 0.0;
};

// Kernels without an op.
struct StrayKernel {
  std::string name;
  double count = 0.0;
  Seconds time{};
  bool is_collective = false;
};

enum class DifferenceCause : std::uint8_t {
  SlowerKernel,
  FasterKernel,
  // A kernel that computes in another number format than the plan.
  OtherFormat,
  MissingFusion,
  MoreFusion,
  ExposedCollective,
  HiddenCollective,
  HostBoundGap,
  OtherGap,
  NotInPlan,
  NotInTrace,
  // The recording leaves the backward pass and the optimizer out.
  NotRecorded,
};
constexpr auto enum_names(DifferenceCause) {
  return std::array{"slower_kernel", "faster_kernel",      "other_number_format", "missing_fusion",
                    "more_fusion",   "exposed_collective", "hidden_collective",   "host_bound_gap",
                    "other_gap",     "not_in_plan",        "not_in_trace",        "not_recorded"};
}

// What makes the measured step longer (above zero) or shorter than the predicted one.
struct StepDifference {
  std::string about;
  DifferenceCause cause = DifferenceCause::SlowerKernel;
  Seconds predicted{}, measured{};

  Seconds difference() const { return measured - predicted; }
};

struct ProgramMatch {
  std::string file;
  std::optional<std::int64_t> rank;
  std::int64_t stage = 0;
  // Steps of the trace that are compared; without marked steps the repetitions of the program.
  std::int64_t steps = 0;
  // The lengths of a step; the measured one is by the device's clock.
  Seconds measured_step, predicted_step;
  // In the order of the program.
  std::vector<MatchedOp> ops;
  // Longest first.
  std::vector<StrayKernel> strays;
  Seconds measured_exposed, predicted_exposed;
  // Idle times: those in which the host had not launched the next kernel, and the rest.
  Seconds measured_host_gaps, predicted_host_gaps, measured_other_gaps, predicted_other_gaps;
  // The ten largest, by size.
  std::vector<StepDifference> differences;
  // True if the trace has attention in the forward direction alone.
  bool forward_only = false;
  // True if the trace marks no steps, so that their number follows from its products.
  bool steps_inferred = false;
};

// Returns nothing if nothing ran on a device. Ops have a roofline if `device` is given.
std::optional<ProgramMatch> match_program(const Trace& trace, const PlannedStep& plan,
                                          const AcceleratorSpec* device = nullptr);

// The ten largest, by size. Defined in step_differences.cpp.
std::vector<StepDifference> differences_of(const ProgramMatch& match);

// Returns the ten largest by size, without those that a step of this length does not show. Defined
// in step_differences.cpp.
std::vector<StepDifference> largest_differences(std::vector<StepDifference> differences,
                                                Seconds step);

// Returns the op that would run farthest above the peak of the device, which shows that the plan is
// not the trace's; null if none does.
const MatchedOp* op_above_peak(const ProgramMatch& match);

nlohmann::ordered_json to_json(const ProgramMatch& match);

}  // namespace shardwright::calibration
