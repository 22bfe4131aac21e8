// The names that the choices of a plan have in files, for reading them (ObjectReader::choice).
#pragma once

#include "core/base/json_reader.hpp"
#include "core/spec/plan.hpp"

namespace shardwright {

const EnumNames<ScheduleKind>& schedule_names();
const EnumNames<RecomputePolicy>& recompute_names();
const EnumNames<ContextParallelKind>& context_parallel_names();
const EnumNames<Axis>& axis_names();
const EnumNames<OptimizerOffload>& optimizer_offload_names();
const EnumNames<Precision>& precision_names();

}  // namespace shardwright
