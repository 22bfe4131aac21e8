// Tables of measured kernels: lookup, and reading and writing as CSV.
//
// A timing of the very shape gives the time. Between two shapes that differ from it only in their
// scale (a GEMM's m, attention's batch, a memory-bound kernel's bytes) the ratio of measured to
// formula is interpolated over the logarithm of the scale, so that the formula keeps its steps.
// Outside of that range the formula stands alone.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "core/spec/cluster_spec.hpp"
#include "core/spec/stack_spec.hpp"
#include "sim/cost/cost.hpp"

namespace shardwright::sim {

// The formula's cost, corrected by the accelerator's measured kernels where they reach.
KernelCost with_measurements(KernelCost formula, OpKind kind, const Work& work, Precision precision,
                             const AcceleratorSpec& accelerator, const StackSpec& stack,
                             double host_speed);

// Reads the format of docs/formats/kernel_table.md. Throws InputError with all problems, each with
// its line and column; after a hundred bad lines, at a line that is too long or at binary data the
// rest is not read.
std::vector<MeasuredKernel> read_kernel_table(const std::string& file);

// Reads a stream's lines; `source` names it in errors.
std::vector<MeasuredKernel> read_kernel_table(std::istream& stream, const std::string& source);

void write_kernel_table(std::ostream& stream, const std::vector<MeasuredKernel>& kernels);

}  // namespace shardwright::sim
