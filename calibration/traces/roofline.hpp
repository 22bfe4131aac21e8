// What a kernel achieved beside what its device can do.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "core/base/units.hpp"
#include "core/op/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/precision.hpp"

namespace shardwright::calibration {

// Shares of the device's ceilings: matrix products of the format, and memory bandwidth. Bytes are
// those that have to move at least: each operand and result once.
struct Roofline {
  FlopPerSecond flop_rate;
  BytesPerSecond traffic;
  double of_peak = 0.0, of_bandwidth = 0.0;
};

// None of communication and of a device without a peak for the format.
std::optional<Roofline> roofline_of(const Work& work, Precision precision, Seconds time,
                                    const AcceleratorSpec& device);

nlohmann::ordered_json to_json(const Roofline& roofline);

}  // namespace shardwright::calibration
