#include "calibration/figure_log.hpp"

#include "calibration/error_statistics.hpp"

namespace shardwright::calibration {

void FigureLog::add(const std::string& part, const std::string& about, const FitResult& result,
                    Sources& sources) const {
  const double residual = summarise_logarithms(result.residuals_after).median_abs;
  for (const FittedParameter& each : result.parameters) {
    figures_->push_back({part + each.name, about, each, result.residuals_after.size(), residual});
    if (!is_determined(each.verdict)) continue;
    Provenance& provenance = sources[each.name];
    provenance = {source_, confidence_};
    provenance.residual = residual;
    provenance.low = each.low;
    provenance.high = each.high;
  }
}

}  // namespace shardwright::calibration
