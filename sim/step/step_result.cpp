#include "sim/step/step_result.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace shardwright::sim {

using nlohmann::ordered_json;

namespace {

template <class Breakdown>
auto& part_of(Breakdown& time, StepPart part) {
  // Null for exposed communication, which `exposed_axis` finds.
  constexpr EnumArray<StepPart, Seconds TimeBreakdown::*> kMembers{
      {&TimeBreakdown::gemm, &TimeBreakdown::attention, &TimeBreakdown::memory_bound,
       &TimeBreakdown::optimizer, &TimeBreakdown::interference, nullptr, nullptr, nullptr, nullptr,
       nullptr, &TimeBreakdown::offload, &TimeBreakdown::bubble, &TimeBreakdown::host,
       &TimeBreakdown::stall}};
  const std::optional<Axis> axis = exposed_axis(part);
  return axis ? time.exposed[*axis] : time.*kMembers[part];
}

}  // namespace

std::optional<Axis> exposed_axis(StepPart part) {
  if (part < StepPart::ExposedTensor || part > StepPart::ExposedPipeline) return std::nullopt;
  return static_cast<Axis>(index_of(part) - index_of(StepPart::ExposedTensor));
}

Seconds TimeBreakdown::of(StepPart part) const {
  return part_of(*this, part);
}

Seconds& TimeBreakdown::of(StepPart part) {
  return part_of(*this, part);
}

void TimeBreakdown::add(const TimeBreakdown& other, double times) {
  for (const StepPart part : enumerators<StepPart>()) of(part) += other.of(part) * times;
  recompute += other.recompute * times;
}

Seconds TimeBreakdown::exposed_total() const {
  Seconds sum;
  for (const Seconds each : exposed) sum += each;
  return sum;
}

ordered_json time_json(const TimeBreakdown& time) {
  ordered_json document = {{"compute_s", time.compute().value()},
                           {"recompute_s", time.recompute.value()}};
  for (const StepPart part : enumerators<StepPart>()) {
    const double seconds = time.of(part).value();
    if (const std::optional<Axis> axis = exposed_axis(part))
      document["exposed"][name_of(*axis)] = seconds;
    else
      document[std::string(name_of(part)) + "_s"] = seconds;
  }
  return document;
}

ordered_json memory_json(const MemoryPeak& memory) {
  ordered_json breakdown = ordered_json::object();
  for (const MemoryCategory category : enumerators<MemoryCategory>()) {
    breakdown[name_of(category)] = memory.of(category).value();
  }
  return {{"peak_bytes", memory.peak.value()}, {"breakdown", std::move(breakdown)}};
}

}  // namespace shardwright::sim
