// Fits the physical parameters of profiles to published timings, in stages.
//
// Kernels: first the achieved memory bandwidth from copies, then the GEMM's parameters, then
// attention's. Collectives: inside of a node, then between nodes. Each stage takes what the earlier
// ones found as given. Nothing is fitted per row or per shape.
#pragma once

#include <string>
#include <vector>

#include "calibration/least_squares.hpp"
#include "calibration/timing.hpp"
#include "core/spec/cluster_spec.hpp"

namespace shardwright::calibration {

struct FitStage {
  // "memory" or "gemm", for example.
  std::string name;
  std::size_t rows = 0;
  FitResult result;
  // Pointers into the profile, by parameter.
  std::vector<std::string> pointers;
};

// Fits `accelerator` to those of the timings that are of its device. Fitted figures carry
// `provenance` in its sources. Stages without rows are left out.
std::vector<FitStage> fit_kernels(AcceleratorSpec& accelerator,
                                  const std::vector<KernelTiming>& timings,
                                  const std::string& provenance);

// Fits to timings that are all of the accelerator's own, whatever their `gpu` says.
std::vector<FitStage> fit_own_kernels(AcceleratorSpec& accelerator,
                                      const std::vector<KernelTiming>& timings,
                                      const std::string& provenance);

// Fits the node and the fabric of `cluster` to those of the timings that it stands for.
std::vector<FitStage> fit_collectives(ClusterSpec& cluster,
                                      const std::vector<CollectiveTiming>& timings,
                                      const std::string& provenance);

}  // namespace shardwright::calibration
