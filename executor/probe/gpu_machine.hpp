// What a machine with GPUs is, as far as CUDA and Linux say so: the profile that a probe of GPUs
// begins with.
#pragma once

#include <cstdint>

#include "core/spec/cluster_spec.hpp"
#include "executor/probe/gpu_facts.hpp"
#include "executor/probe/machine.hpp"

namespace shardwright::executor {

struct RanksOnGpus {
  std::int64_t per_host = 1, hosts = 1;
  std::int64_t per_gpu = 1;  // above 1: ranks share GPUs, and each gets a part of the memory
};

// A cluster of `ranks.hosts` hosts like this, whose GPUs are all like the first one; `gpus` has at
// least one.
//
// The GPU is the shipped profile that its name means, with what CUDA says in place of memory, L2,
// multiprocessors, clock and memory bandwidth; peaks follow the number of multiprocessors, not the
// clock, which under load is not the highest. A GPU that no profile describes gets peaks by its
// compute capability (`matrix_flop_per_clock`) and the usual efficiencies.
//
// Links among GPUs begin with the slowest copy between two of them, or with copies through the host
// where some cannot reach each other or this process sees too few of them. With direct links but no
// switch a copy uses a part of them only: timed exchanges then say more.
ClusterSpec describe_gpus(const GpuHost& gpus, const HostFacts& host, const RanksOnGpus& ranks);

// Dense 16-bit matrix products with fp32 accumulation, per clock and multiprocessor, of a GPU with
// this name and compute capability ("9.0"); of a capability that is not known those of the nearest
// below. GeForce cards from Ampere on do half. Sources: NVIDIA's architecture white papers (V100,
// Turing, A100, GA102, Ada, H100, Blackwell, RTX Blackwell).
double matrix_flop_per_clock(const GpuFacts& gpu);

// Whether it multiplies in bf16, which the executor computes in on GPUs: from compute capability
// 8.0 on (NVIDIA A100 Tensor Core GPU Architecture).
bool has_bf16(const GpuFacts& gpu);

}  // namespace shardwright::executor
