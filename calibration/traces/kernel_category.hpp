// What kind of work a kernel does, told from its name.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/timeline/traced_kernel.hpp"

namespace shardwright::calibration {

using shardwright::KernelCategory;

// By the first family of docs/import.md that the name belongs to.
KernelCategory category_of_kernel(std::string_view kernel);

// By the operator that launched a kernel of no known family.
KernelCategory category_of_op(std::string_view op);

// The kind of a collective ("all_reduce") from the name of its kernel or of its call: "ncclKernel_
// AllReduce_RING_LL_Sum_float", "_allgather_base". Empty if it tells none (RCCL's Generic).
std::string collective_kind(std::string_view name);

// Bytes that the links must carry over the bytes of the collective, so that bus bandwidths of
// different groups compare with the hardware's (nccl-tests, doc/PERFORMANCE.md).
double bus_factor(std::string_view kind, double group_size);

std::string lower_case(std::string_view text);

}  // namespace shardwright::calibration
