// The result of a calibration or a probe, as a page and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "calibration/calibrate.hpp"
#include "cli/output/page.hpp"

namespace shardwright::cli {

// Adds step times and ops before and after, and the figures. `before`: whether the profile that was
// calibrated is worth comparing with.
void add_calibration(Page& page, const calibration::Calibration& calibration, bool before);

nlohmann::ordered_json calibration_json(const calibration::Calibration& calibration);

}  // namespace shardwright::cli
