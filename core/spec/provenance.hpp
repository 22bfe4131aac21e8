// The sources of the figures in profiles.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/base/enum_names.hpp"

namespace shardwright {

enum class Confidence : std::uint8_t { Datasheet, Measured, Fitted, Derived, Assumed };
constexpr auto enum_names(Confidence) {
  return std::array{"datasheet", "measured", "fitted", "derived", "assumed"};
}

// The source of a figure.
struct Provenance {
  // The title or address of a public document, or the command that measured the figure.
  std::string source;
  Confidence confidence = Confidence::Assumed;
  // The 95 % interval of a fitted figure, and the median relative error that is left of the
  // measurements behind it. Zeros: not known.
  double low = 0.0, high = 0.0;
  double residual = 0.0;

  bool operator==(const Provenance&) const = default;
};

// Sources by JSON pointer into the profile's file ("/memory/bandwidth_bytes_per_s").
using Sources = std::map<std::string, Provenance>;

}  // namespace shardwright
