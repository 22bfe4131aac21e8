// The profile that imported traces refit.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "calibration/calibrate.hpp"
#include "calibration/traces/program_match.hpp"
#include "calibration/traces/rank_matching.hpp"
#include "calibration/traces/trace.hpp"
#include "core/spec/scenario.hpp"

namespace shardwright::cli {

// The first trace in which something ran on a device, or else the first one. At least one trace.
std::size_t first_with_device(const std::vector<calibration::Trace>& traces);

// A table of measured kernels is of one device. Traces in which nothing ran on one say nothing.
bool are_of_one_gpu(const std::vector<calibration::Trace>& traces);

// Each trace beside the step of its stage, at the clock of the traces.
std::vector<calibration::ProgramMatch> match_plan(const std::vector<calibration::Trace>& traces,
                                                  const Scenario& scenario);

// Returns a sentence if an op would run above the peak of the device; an empty text if none does.
std::string other_shapes_warning(const std::vector<calibration::ProgramMatch>& matches);

// The profile that the traces are of, and the stack of their host's figures.
struct Profile {
  ClusterSpec cluster;
  StackSpec stack;
};

struct Refit {
  // Nothing where the traces say nothing of the profile.
  std::optional<calibration::Calibration> calibration;
  // What the refit leaves out, and why.
  std::vector<std::string> warnings;
};

Refit refit_profile(const Profile& profile, const std::vector<calibration::Trace>& traces,
                    const std::vector<calibration::ProgramMatch>& matches,
                    const std::optional<calibration::RankMatching>& matching);

}  // namespace shardwright::cli
