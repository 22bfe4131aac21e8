#include "calibration/traces/roofline.hpp"

#include <nlohmann/json.hpp>

namespace shardwright::calibration {
namespace {

Bytes element_of(Precision precision) {
  return precision == Precision::Fp8 ? Bytes(1.0) : storage_bytes(precision);
}

Bytes traffic_of(const GemmWork& work, Precision precision) {
  const auto m = static_cast<double>(work.m), n = static_cast<double>(work.n),
             k = static_cast<double>(work.k), batch = static_cast<double>(work.batch),
             groups = static_cast<double>(work.groups);
  // Weights of every expert; of weight gradients the results.
  const double operands =
      work.groups_share_k ? m * k + k * n + groups * m * n : m * k + groups * k * n + m * n;
  return element_of(precision) * (operands * batch);
}

// Queries, keys, values and outputs; backward also their gradients.
Bytes traffic_of(const AttentionWork& work, Precision precision) {
  const auto tokens = static_cast<double>(work.q_tokens * work.heads),
             kv_tokens = static_cast<double>(work.kv_tokens * work.kv_heads),
             width = static_cast<double>(work.qk_head_dim + work.v_head_dim);
  const double passes = work.backward ? 2.0 : 1.0;
  return element_of(precision) *
         (passes * static_cast<double>(work.batch) * (tokens + kv_tokens) * width);
}

}  // namespace

std::optional<Roofline> roofline_of(const Work& work, Precision precision, Seconds time,
                                    const AcceleratorSpec& device) {
  Flop flop;
  Bytes traffic;
  if (const auto* gemm = std::get_if<GemmWork>(&work)) {
    flop = gemm->flop();
    traffic = traffic_of(*gemm, precision);
  } else if (const auto* attention = std::get_if<AttentionWork>(&work)) {
    flop = attention->flop();
    traffic = traffic_of(*attention, precision);
  } else if (const auto* memory = std::get_if<MemoryWork>(&work)) {
    traffic = memory->read + memory->written;
  }
  const FlopPerSecond peak = device.matrix.of(precision);
  if (time <= Seconds(0.0) || traffic <= Bytes(0.0) || peak <= FlopPerSecond(0.0) ||
      device.memory_bandwidth <= BytesPerSecond(0.0))
    return std::nullopt;
  const FlopPerSecond rate = flop / time;
  const BytesPerSecond moved = traffic / time;
  return Roofline{rate, moved, rate / peak, moved / device.memory_bandwidth};
}

nlohmann::ordered_json to_json(const Roofline& roofline) {
  return {{"flop_per_s", roofline.flop_rate.value()},
          {"bytes_per_s", roofline.traffic.value()},
          {"of_peak_ratio", roofline.of_peak},
          {"of_bandwidth_ratio", roofline.of_bandwidth}};
}

}  // namespace shardwright::calibration
