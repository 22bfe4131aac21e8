// Which generation of a framework a row ran: names outlive the software behind them.
#pragma once

#include <cstdint>
#include <string>

#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// The year of the source; without one, that in which such accelerators were usual.
std::int64_t software_year(const TrainingRow& row);

// The shipped profile that stands for a framework of the Megatron family which has none of its own
// ("Megatron-LM", "GPT-NeoX", …) in the row's year; empty: the generic one does.
std::string megatron_generation(const TrainingRow& row);

// The same of NeMo, by the release that its name states or the row's year, and of MLPerf
// submissions on NVIDIA's accelerators that name no software; empty for other software and where
// the name says the generation itself.
std::string nemo_generation(const TrainingRow& row);

// Fused attention came out in May 2022 (arXiv 2205.14135) and into frameworks in the year after:
// what has no profile of its own ran without it until then.
bool is_before_fused_attention(const TrainingRow& row);

}  // namespace shardwright::sim
