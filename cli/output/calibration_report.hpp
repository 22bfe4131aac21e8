// The results of a calibration or a probe, and tables of errors, as pages and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "calibration/batch_fit.hpp"
#include "calibration/calibrate.hpp"
#include "calibration/error_statistics.hpp"
#include "cli/output/page.hpp"
#include "cli/output/table.hpp"

namespace shardwright::cli {

// Adds step times and ops before and after, and the figures. `before`: whether the profile that was
// calibrated is worth comparing with.
void add_calibration(Page& page, const calibration::Calibration& calibration, bool before);

nlohmann::ordered_json calibration_json(const calibration::Calibration& calibration);

// Adds the law of loss and the critical batch that were fitted.
void add_batch_fit(Page& page, const calibration::BatchFit& fit);

nlohmann::ordered_json batch_fit_json(const calibration::BatchFit& fit);

// Returns an empty table; `what` is the title of the column of names.
Table error_table(const std::string& what);

void add_errors(Table& table, const std::string& name, const calibration::ErrorSummary& summary);

}  // namespace shardwright::cli
