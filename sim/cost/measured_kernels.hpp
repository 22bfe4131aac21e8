// Tables of measured kernels: lookup, and reading and writing as CSV.
//
// A timing of the very shape gives the time. Between two shapes that differ from it only in their
// scale (a GEMM's m, attention's batch, a memory-bound kernel's bytes) the ratio of measured to
// formula is interpolated over the logarithm of the scale, so that the formula keeps its steps.
// Products and attention of other shapes take a ratio that is interpolated between the measured
// shapes near them. Far from all of them the formula stands alone.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "core/spec/cluster_spec.hpp"
#include "core/spec/stack_spec.hpp"
#include "sim/cost/cost.hpp"

namespace shardwright::sim {

// The ratio of measured to formula time at a shape that is near to measured ones. The logarithm of
// the ratio is interpolated by simple kriging (a Gaussian process of mean 0, where the formula
// holds) from the 40 nearest shapes within 1.5 octaves: it varies from shape to shape by 10 %
// (standard deviation) with a covariance that falls by e in two octaves of distance, and each shape
// deviates from that by 5.5 % of its own, because the library chooses another kernel. The distance
// is the Euclidean one in octaves of m, n and k (of attention's batch, heads, heads of keys, tokens
// and head width). Only kernels count that agree in all else but whether they add to an fp32
// buffer. 1 where there is none, and for memory-bound kernels.
// `accelerator` is the device of the formula; `kernels` were measured on it.
// Source: Cressie, Statistics for Spatial Data, 1993, section 3.2 (simple kriging).
double ratio_near(OpKind kind, const Work& work, Precision precision,
                  const AcceleratorSpec& accelerator, const StackSpec& stack, double host_speed,
                  const std::vector<MeasuredKernel>& kernels);

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
