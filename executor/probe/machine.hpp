// What a machine is, as far as it says so itself: the profile that a probe begins with.
#pragma once

#include <cstdint>
#include <string>

#include "core/spec/cluster_spec.hpp"

namespace shardwright::executor {

// Of ranks on the CPUs of `hosts` hosts like this one. Each rank gets an equal part of the cores
// that this process may run on and of the memory. Bandwidth of memory is measured; all ranks of a
// host call it at the same time. Kernels and exchanges have no figures yet: the profile holds
// guesses that `shardwright probe` replaces by what the probe's runs and exchanges say.
ClusterSpec describe_machine(std::int64_t ranks_per_host, std::int64_t hosts);

// "measured by shardwright probe, 2026-03-01, Intel(R) Xeon(R) Processor"
std::string probe_source(const std::string& device);

}  // namespace shardwright::executor
