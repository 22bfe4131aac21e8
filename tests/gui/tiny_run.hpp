// What a machine of any size can train.
#pragma once

#include "calibration/run_device.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/scenario.hpp"

namespace shardwright::gui {

// Links of a server, CPUs of which nothing was measured yet, and a stack that is shipped nowhere,
// as a probe writes it.
inline ClusterSpec cpu_cluster() {
  ClusterSpec cluster = load_cluster("h100-pcie-server");
  cluster.name = "cpu-server";
  cluster.accelerator.name = "cpu-rank";
  cluster.accelerator.architecture = kCpuArchitecture;
  cluster.stack = load_stack("shardwright");
  cluster.stack->name = "shardwright-cpu";
  return cluster;
}

// Two ranks.
inline Scenario tiny_scenario(const ClusterSpec& cluster = cpu_cluster()) {
  Scenario scenario{
      load_model("tiny-llama"), cluster, cluster.stack.value_or(load_stack("shardwright")), {}};
  scenario.plan.tp = 2;
  scenario.plan.global_batch = 2;
  scenario.plan.seq_len = 32;
  scenario.plan.precision = Precision::Fp32;
  return scenario;
}

}  // namespace shardwright::gui
