// Notes what a calibration did to each figure: in the report, and in the profile's sources.
#pragma once

#include <string>
#include <vector>

#include "calibration/calibrate.hpp"
#include "core/spec/provenance.hpp"

namespace shardwright::calibration {

class FigureLog {
 public:
  FigureLog(std::string source, Confidence confidence, std::vector<CalibratedFigure>& figures)
      : source_(std::move(source)), confidence_(confidence), figures_(&figures) {}

  // Parameters of `result` are named by their pointers within the part of the cluster at `part`,
  // whose `sources` those that were fitted join.
  void add(const std::string& part, const std::string& about, const FitResult& result,
           Sources& sources) const;

 private:
  std::string source_;
  Confidence confidence_;
  std::vector<CalibratedFigure>* figures_;
};

}  // namespace shardwright::calibration
