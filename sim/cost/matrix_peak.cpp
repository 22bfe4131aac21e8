#include "sim/cost/matrix_peak.hpp"

namespace shardwright::sim {
namespace {

FlopPerSecond first_of(std::initializer_list<FlopPerSecond> peaks) {
  for (const FlopPerSecond peak : peaks)
    if (peak > FlopPerSecond(0)) return peak;
  return FlopPerSecond(0);
}

}  // namespace

FlopPerSecond matrix_peak(const AcceleratorSpec& accelerator, Precision precision) {
  const MatrixPeaks& peaks = accelerator.matrix;
  const FlopPerSecond vector = accelerator.vector_fp32;
  FlopPerSecond peak;
  switch (precision) {
    case Precision::Fp32:
      peak = first_of({peaks.fp32, vector});
      break;
    case Precision::Tf32:
      peak = first_of({peaks.tf32, peaks.fp32, vector});
      break;
    case Precision::Fp16:
      peak = first_of({peaks.fp16, peaks.bf16, peaks.fp32, vector});
      break;
    case Precision::Bf16:
      peak = first_of({peaks.bf16, peaks.fp16, peaks.fp32, vector});
      break;
    case Precision::Fp8:
      peak = first_of({peaks.fp8, peaks.bf16, peaks.fp16, peaks.fp32, vector});
      break;
    case Precision::Nvfp4:
      peak = first_of({peaks.fp4, peaks.fp8, peaks.bf16, peaks.fp16, peaks.fp32, vector});
      break;
  }
  const bool apart = casts_operands(precision) && peaks.fp8 > FlopPerSecond(0) &&
                     accelerator.sustained_fp8_clock_ratio > 0.0;
  return peak * (apart ? accelerator.sustained_fp8_clock_ratio : accelerator.sustained_clock_ratio);
}

AcceleratorSpec at_full_clock(AcceleratorSpec accelerator) {
  accelerator.sustained_clock_ratio = accelerator.sustained_fp8_clock_ratio = 1.0;
  return accelerator;
}

AcceleratorSpec in_burst(AcceleratorSpec accelerator) {
  const BurstEfficiency& burst = accelerator.burst;
  KernelEfficiency& efficiency = accelerator.efficiency;
  const auto replace = [](auto& figure, auto in_bursts) {
    if (in_bursts > decltype(in_bursts){}) figure = in_bursts;
  };
  replace(efficiency.matrix_main_loop, burst.matrix_main_loop);
  replace(efficiency.matrix_fp8, burst.matrix_fp8);
  replace(efficiency.gemm_overhead, burst.gemm_overhead);
  replace(efficiency.wave_loss, burst.wave_loss);
  replace(efficiency.operand_bandwidth_ratio, burst.operand_bandwidth_ratio);
  replace(efficiency.result_exposed, burst.result_exposed);
  replace(efficiency.power_slowdown, burst.power_slowdown);
  replace(efficiency.power_delay, burst.power_delay);
  replace(efficiency.attention_forward, burst.attention_forward);
  return accelerator;
}

double matrix_efficiency(const AcceleratorSpec& accelerator, Precision precision) {
  const KernelEfficiency& efficiency = accelerator.efficiency;
  if (precision == Precision::Tf32 || precision == Precision::Fp32) return efficiency.matrix_tf32;
  const bool in_fp8 = casts_operands(precision) && accelerator.matrix.fp8 > FlopPerSecond(0);
  if (in_fp8) return efficiency.matrix_fp8;
  return efficiency.matrix_main_loop > 0.0 ? efficiency.matrix_main_loop : efficiency.matrix;
}

}  // namespace shardwright::sim
