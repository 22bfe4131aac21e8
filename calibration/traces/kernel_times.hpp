// The times of kernels in traces, by which those of other ranks and runs are predicted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibration/traces/device_steps.hpp"
#include "calibration/traces/trace.hpp"
#include "core/base/units.hpp"

namespace shardwright::calibration {

// A kernel is known by its name, the size of its grid and the shapes of its operator; what ran
// before it says what it finds in the caches. A timing of the same kernel behind the same two
// counts first, then one behind the same one, then any of the kernel.
class KernelTimes {
 public:
  explicit KernelTimes(const std::vector<Trace>& traces);

  struct Time {
    Seconds median, mean;
  };
  // The times of a device's activities, in their order; none of collectives and of unknown kernels.
  std::vector<std::optional<Time>> of(const Trace& trace, const Activities& activities) const;

 private:
  using Context = std::vector<std::string>;
  template <class Visit>
  static void for_each_context(const Trace& trace, const Activities& activities, Visit visit);

  std::map<Context, std::vector<Seconds>> times_;
  std::map<Context, Time> summaries_;
};

struct KernelErrors {
  std::string file;
  // Kernels but those of collectives, and how many of them the other traces do not know.
  std::int64_t kernels = 0, unknown = 0;
  // Relative errors of known kernels, one by one; none without any.
  std::optional<double> median{}, p90{};
  // The sums over known kernels.
  Seconds predicted{}, measured{};
};

KernelErrors errors_on(const Trace& trace, const KernelTimes& times);

}  // namespace shardwright::calibration
