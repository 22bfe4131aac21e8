// Which kernels of a step belong to which op of a plan's program.
//
// Products with one size, such as the projections of queries, keys, values and outputs of a model
// that does not join the first three, are told apart by their place between products and
// attention whose partners are known. The same places tell to which kind of op a kernel belongs
// that memory traffic limits and that an eager framework names after its arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "calibration/traces/kernel_calls.hpp"
#include "calibration/traces/program_match.hpp"

namespace shardwright::calibration {

// False of ops that a recording of the forward pass alone cannot have.
bool is_recorded(const PlannedOp& op, bool forward_only);

// How often the program's products occur in calls of an unmarked recording: the median over sizes,
// or where the recording has no shapes the ratio of the numbers of attentions, or of products.
std::int64_t repetitions_in(const std::vector<KernelCall>& calls, const std::vector<PlannedOp>& ops,
                            bool forward_only);

struct OpAssignment {
  // The calls of each op, where op i of repetition r has the number i + r * ops.
  std::vector<std::vector<std::size_t>> calls_of;
  // True of each call that belongs to one of those ops.
  std::vector<bool> is_taken;
  // The kind of each call that memory traffic limits; none for other calls, and where nothing
  // tells.
  std::vector<std::optional<OpKind>> memory_bound;
};

// Assigns calls, which are in the order of launch, to products, attention and communication.
// `names` are those of the calls' trace.
OpAssignment assign_ops(const std::vector<PlannedOp>& ops, std::int64_t repetitions,
                        const std::vector<KernelCall>& calls, const NameTable& names,
                        bool forward_only);

}  // namespace shardwright::calibration
