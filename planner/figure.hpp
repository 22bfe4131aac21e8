// The figures of a simulated step that plans are compared by: their names, units and values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>

#include "core/base/enum_names.hpp"
#include "core/program/program.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::planner {

// A figure of the step as a whole.
enum class StepFigure : std::uint8_t {
  Step,
  MemoryPeak,
  TokensPerSecondPerAccelerator,
  TflopsPerAccelerator,
  Mfu,
  Hfu,
  TokensPerSecond,
  DollarsPerToken,
};
constexpr auto enum_names(StepFigure) {
  return std::array{"step_s", "memory_peak_bytes", "tokens_per_s_per_gpu", "tflops_per_gpu", "mfu",
                    "hfu",    "tokens_per_s",      "dollars_per_token"};
}
using shardwright::name_of;

// The whole step, a part of its time, or a category of its memory.
using Figure = std::variant<StepFigure, sim::StepPart, MemoryCategory>;

enum class FigureUnit : std::uint8_t { Seconds, Bytes, Ratio, Number, Dollars };

FigureUnit unit_of(const Figure& figure);

// The figure in files, with its unit: "exposed_tp_s".
std::string key_of(const Figure& figure);

// A part of the step in a sentence: "exposed tensor-parallel communication".
const char* part_text(sim::StepPart part);

// A part of the step in a chart: "exposed: tensor parallel".
const char* part_title(sim::StepPart part);

// A part of the step as a share of its use (planner/explain.hpp): "tensor-parallel". Empty for the
// only part of a use.
const char* part_within(sim::StepPart part);

// "optimizer states".
std::string memory_text(MemoryCategory category);

// "MFU", "GEMMs", "memory: weights".
std::string figure_text(const Figure& figure);

// A value with its unit: "1.234 s", "47.3 %". Prices are those of a million tokens.
std::string value_text(const Figure& figure, double value);

}  // namespace shardwright::planner
