// The figures of accelerators and stacks that measured training steps can determine.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/spec/scenario.hpp"

namespace shardwright::validation {

// The profiles that a figure stands in. AllAccelerators: one figure that all of them share.
enum class ProfileKind { Accelerator, AllAccelerators, Stack };

// One figure of one profile, or of all accelerators. `get` and `set` act on a scenario that the
// profile is part of.
struct TrainingParameter {
  ProfileKind kind = ProfileKind::Accelerator;
  // "h100-sxm", "megatron-core", "all accelerators". A figure of a variant of a stack belongs to the
  // profile that states it.
  std::string profile;
  // The place of the figure in the profile's file: "host/launch_s".
  std::string key;
  // The physical range.
  double low = 0.0, high = 0.0;
  // The value that is expected before any row is seen.
  double typical = 0.0;
  // How far from that it may plausibly lie, one deviation.
  double spread = 0.0;
  // Steps and `spread` are relative.
  bool logarithmic = false;
  std::function<double(const Scenario&)> get;
  std::function<void(Scenario&, double)> set;
  // Indices of the scenarios that it governs.
  std::vector<std::size_t> rows;
  // The profiles of those scenarios that have the figure: `profile`, or each of their accelerators.
  std::set<std::string> profiles;
};

// Returns a parameter for each figure of each profile that at least `least_rows` of the scenarios use.
std::vector<TrainingParameter> training_parameters(const std::vector<Scenario>& scenarios,
                                                   std::size_t least_rows);

}  // namespace shardwright::validation
