// The figures of accelerators and stacks that measured training steps can determine.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/spec/scenario.hpp"

namespace shardwright::validation {

// Of all accelerators: one figure that they share.
enum class ProfileKind { Accelerator, AllAccelerators, Stack };

// One figure of one profile, or of all accelerators. `get` and `set` act on a scenario that the
// profile is part of.
struct TrainingParameter {
  ProfileKind kind = ProfileKind::Accelerator;
  std::string profile;           // "h100-sxm", "megatron-core", "all accelerators"
  std::string key;               // of the figure in the profile's file, "host/launch_s"
  double low = 0.0, high = 0.0;  // physical range
  double typical = 0.0;          // what is expected before any row is seen
  double spread = 0.0;           // how far from that it may plausibly lie, one deviation
  bool logarithmic = false;      // steps and `spread` are relative
  std::function<double(const Scenario&)> get;
  std::function<void(Scenario&, double)> set;
  std::vector<std::size_t> rows;  // indices of the scenarios that it governs
  // Whose figure those scenarios have: `profile`, or each of the accelerators that they are on.
  std::set<std::string> profiles;
};

// A parameter for each figure of each profile that at least `least_rows` of the scenarios use.
std::vector<TrainingParameter> training_parameters(const std::vector<Scenario>& scenarios,
                                                   std::size_t least_rows);

}  // namespace shardwright::validation
