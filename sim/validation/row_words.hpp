// The words that sources have for the choices of a plan.
//
// Every framework writes them in its own way; what is looked for here are the parts that tell them
// apart, in any case and with any signs between.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/letters_and_digits.hpp"
#include "core/spec/plan.hpp"

namespace shardwright::sim {

bool is_digit(char c);

// "bf16", "bfloat16", "BF16-mixed"; "fp16", "half"; "fp8", "mxfp8", "fp8-mx", "float8"; "nvfp4"; ….
// None for formats that are not modelled, and for words that name none.
std::optional<Precision> precision_in(std::string_view text);

// What training runs in where the source does not say: V100 has no bf16.
Precision usual_precision(std::string_view gpu);

// "int8", "mxfp4", "fp64": a format, but none of those that are modelled. "amp O2", "mixed" and
// "not stated" name none.
bool names_other_format(std::string_view text);

// "1f1b", "PipeDream-flush"; "interleaved 1F1B"; "GPipe", "afab"; "zb-h1", "zero-bubble zb-1p"; …;
// with 1F1B for "interleaved" on one chunk a rank, and the other way round. None for unknown ones.
std::optional<ScheduleKind> schedule_in(std::string_view text, std::int64_t vpp);

}  // namespace shardwright::sim
