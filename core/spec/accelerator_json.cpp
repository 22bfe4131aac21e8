// The fields of accelerator profiles.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/spec/cluster_json.hpp"
#include "core/spec/cost_curve_fields.hpp"
#include "core/spec/field_json.hpp"
#include "core/spec/figures.hpp"

namespace shardwright {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr NumberRange kKernelTime{0.0, 1.0, false};
constexpr Presence kTypical = reported("typical of vendor libraries");
constexpr Presence kNoThrottling = reported("no throttling known");

void describe_peaks(MatrixPeaks& peaks, FieldVisitor& fields) {
  fields.number("fp32_flop_per_s", peaks.fp32, kPositive, kOmissible, "dense peak in fp32");
  fields.number("tf32_flop_per_s", peaks.tf32, kPositive, kOmissible, "dense peak in tf32");
  fields.number("fp16_flop_per_s", peaks.fp16, kPositive, kOmissible, "dense peak in fp16");
  fields.number("bf16_flop_per_s", peaks.bf16, kPositive, kOmissible, "dense peak in bf16");
  fields.number("fp8_flop_per_s", peaks.fp8, kPositive, kOmissible, "dense peak in fp8");
  fields.number("fp4_flop_per_s", peaks.fp4, kPositive, kOmissible, "dense peak in nvfp4");
}

void describe_memory(AcceleratorSpec& accelerator, FieldVisitor& fields) {
  fields.number("capacity_bytes", accelerator.memory, kPositive, kRequired,
                "what CUDA or nvidia-smi reports as total where a public output shows it, else the "
                "datasheet's figure");
  fields.number("bandwidth_bytes_per_s", accelerator.memory_bandwidth, kPositive, kRequired,
                "bandwidth of the device memory");
  fields.number("l2_cache_bytes", accelerator.l2_cache, kPositive,
                reported("as large as an A100's", 40e6), "size of the L2 cache");
}

void describe_power(AcceleratorSpec& accelerator, FieldVisitor& fields) {
  fields.number("design_w", accelerator.power, kPositive, reported("as an H100 SXM", 700.0),
                "thermal design power");
  fields.number("idle_w", accelerator.idle_power, kNonNegative,
                derived(kReported, 0.1 * accelerator.power.value(), "a tenth of the design power"),
                "power of an idle device; at most the design power");
}

void describe_rates(KernelEfficiency& efficiency, FieldVisitor& fields) {
  fields.number("matrix_ratio", efficiency.matrix, kRatio, kTypical,
                "rate of the largest GEMMs over the 16-bit matrix peak; used where "
                "`matrix_main_loop_ratio` is 0");
  fields.number("matrix_main_loop_ratio", efficiency.matrix_main_loop, kRatioOrZero,
                reported("not fitted, the matrix ratio stands in"),
                "rate of a GEMM's inner loop over the 16-bit matrix peak, without the losses to "
                "tiles, waves and results ([model](../models/gemm.md)); 0: not fitted");
  fields.number("matrix_tf32_ratio", efficiency.matrix_tf32, kRatio, kTypical,
                "the same of tf32 and fp32 over their peaks");
  fields.number("matrix_fp8_ratio", efficiency.matrix_fp8, kRatio, kTypical,
                "the same of fp8 over its peak");
  fields.number("memory_ratio", efficiency.memory, kRatio, kTypical,
                "bandwidth of large streaming kernels over that of the memory");
  fields.number("attention_forward_ratio", efficiency.attention_forward, kRatio, kTypical,
                "rate of fused attention on long sequences of heads of width 128 over the matrix "
                "peak, forward");
  fields.number("attention_backward_ratio", efficiency.attention_backward, kRatio, kTypical,
                "the same of the backward pass");
  fields.number("softmax_overlap_ratio", efficiency.softmax_overlap, kRatioOrZero, kOmissible,
                "share of the shorter one of a score's products and its softmax that runs beside "
                "the longer one ([model](../models/attention.md))");
}

void describe_efficiency(AcceleratorSpec& accelerator, FieldVisitor& fields) {
  KernelEfficiency& efficiency = accelerator.efficiency;
  describe_rates(efficiency, fields);
  fields.number("kernel_overhead_s", efficiency.kernel_overhead, kKernelTime, kTypical,
                "prologue and epilogue of a kernel on the device");
  fields.number("gemm_overhead_s", efficiency.gemm_overhead, kKernelTime, kTypical,
                "the same of a GEMM, which fills its operand pipeline");
  fields.number("wave_loss_ratio", efficiency.wave_loss, kRatioOrZero, kTypical,
                "loss of a partly filled last wave of tiles: 1 for plain tiling, 0 where the "
                "library balances it (stream-K)");
  fields.number("operand_bandwidth_ratio", efficiency.operand_bandwidth_ratio, kPositive, kTypical,
                "bandwidth of operands to the matrix units, through L2 and multicast, over "
                "achieved memory bandwidth");
  fields.number("result_exposed_ratio", efficiency.result_exposed, kRatioOrZero, kTypical,
                "share of the time to write a GEMM's result that no other tile's products hide");
  fields.number("power_slowdown_ratio", efficiency.power_slowdown, kNonNegative, kNoThrottling,
                "extra time of a long GEMM once the device has reached its power limit");
  fields.number("power_delay_s", efficiency.power_delay, {0.0, 1.0, true}, kTypical,
                "GEMM time after which half of that slowdown is felt");
  fields.number("l2_bandwidth_ratio", efficiency.l2_bandwidth_ratio, kPositive, kTypical,
                "achieved L2 over achieved memory bandwidth of streaming kernels");
  fields.number("l2_share_ratio", efficiency.l2_share, kRatio, kTypical,
                "share of the L2 cache that stays resident from one kernel to the next");
  fields.number("host_link_ratio", efficiency.host_link, kRatio, kTypical,
                "bandwidth of large copies over that of the link to the host");
  fields.number("sustained_clock_ratio", accelerator.sustained_clock_ratio, kRatio, kNoThrottling,
                "clock under hours of dense GEMMs over the clock that the peaks assume");
  fields.number("sustained_fp8_clock_ratio", accelerator.sustained_fp8_clock_ratio, kRatio,
                kOmissible,
                "the same for products of 8-bit elements, which draw less power; left out where it "
                "is not known apart");
  fields.number("speed_variation_ratio", accelerator.speed_variation, {0.0, 0.2, false}, kOmissible,
                "relative standard deviation of the speed of devices of one batch "
                "([model](../models/step.md#the-slowest-of-many))");
}

void describe_burst(BurstEfficiency& burst, FieldVisitor& fields) {
  fields.number("matrix_main_loop_ratio", burst.matrix_main_loop, {0.0, 1.5, false}, kOmissible,
                "here and below: as in `efficiency`, which holds where a figure is left out");
  fields.number("matrix_fp8_ratio", burst.matrix_fp8, {0.0, 1.5, false}, kOmissible,
                "clocks of bursts may be above that which the peak assumes");
  fields.number("gemm_overhead_s", burst.gemm_overhead, kKernelTime, kOmissible,
                "kernels of a graph follow each other at once");
  fields.number("wave_loss_ratio", burst.wave_loss, kRatioOrZero, kOmissible,
                "libraries of later releases lose less");
  fields.number("operand_bandwidth_ratio", burst.operand_bandwidth_ratio, kNonNegative, kOmissible,
                "of the same libraries");
  fields.number("result_exposed_ratio", burst.result_exposed, kRatioOrZero, kOmissible,
                "of the same libraries");
  fields.number("power_slowdown_ratio", burst.power_slowdown, kNonNegative, kOmissible,
                "a cool device slows down less");
  fields.number("power_delay_s", burst.power_delay, kKernelTime, kOmissible,
                "GEMM time after which half of that slowdown is felt");
  fields.number("attention_forward_ratio", burst.attention_forward, kRatioOrZero, kOmissible,
                "of the best kernels of inference stacks");
}

void check_accelerator(const AcceleratorSpec& accelerator, const std::string& pointer,
                       ProblemList& problems) {
  const MatrixPeaks& peaks = accelerator.matrix;
  if (std::max({peaks.fp16, peaks.bf16, peaks.fp32}) <= FlopPerSecond(0.0)) {
    problems.add(pointer + "/matrix", "no format",
                 "fp16_flop_per_s, bf16_flop_per_s or fp32_flop_per_s");
  }
  if (accelerator.idle_power > accelerator.power) {
    problems.add(pointer + "/power/idle_w", fmt::format("{}", accelerator.idle_power.value()),
                 fmt::format("at most the design power of {}", accelerator.power.value()));
  }
}

}  // namespace

void describe(AcceleratorSpec& accelerator, FieldVisitor& fields) {
  fields.header("shardwright/accelerator", true);
  fields.text("name", accelerator.name, kRequired, "name of the profile");
  fields.text("vendor", accelerator.vendor, kOptional, "nvidia, amd, google, …");
  fields.choice("architecture", accelerator.architecture, kOptional,
                "generation, by which formulas choose tiles and kernels; cpu: the cores of a host "
                "that one rank gets");
  fields.texts("aliases", accelerator.aliases, kOptional,
               "other spellings that published measurements use");
  fields.section("matrix", kRequired,
                 "dense matrix peaks by format; a device cannot multiply in a format that is left "
                 "out, and fp16, bf16 or fp32 is required",
                 [&] { describe_peaks(accelerator.matrix, fields); });
  const MatrixPeaks& peaks = accelerator.matrix;
  const double half = std::max({peaks.fp16, peaks.bf16, FlopPerSecond(16.0)}).value();
  fields.number("vector_fp32_flop_per_s", accelerator.vector_fp32, kPositive,
                derived(kReported, half / 16.0, "a sixteenth of the 16-bit matrix peak"),
                "peak in fp32 outside of the matrix units");
  fields.number(
      "exponentials_per_s", accelerator.exponentials_per_s, kPositive, kOmissible,
      "peak of exponentials on the special-function units, at the clock of the matrix "
      "peaks, which limits the softmax of attention ([model](../models/attention.md)); left out "
      "where it is not known");
  fields.section("memory", kRequired, "device memory and cache",
                 [&] { describe_memory(accelerator, fields); });
  fields.integer("compute_units", accelerator.compute_units, {1, 1'000'000},
                 reported("as an H100 SXM", 132), "SMs, CUs or cores");
  fields.number("max_clock_hz", accelerator.max_clock, kPositive,
                reported("typical of the field", 1.8e9), "highest clock");
  fields.section("power", kOptional, "power of one device",
                 [&] { describe_power(accelerator, fields); });
  fields.section("efficiency", kOptional,
                 "how well kernels of the vendor's libraries use the device",
                 [&] { describe_efficiency(accelerator, fields); });
  fields.section(
      "burst", kOptional,
      "what differs for kernels of bursts: a few repeats in one CUDA graph, before which "
      "the device was idle; no step is one ([model](../models/gemm.md#bursts))",
      [&] { describe_burst(accelerator.burst, fields); });
  fields.list("kernel_curves", accelerator.kernel_curves, kOmissible,
              "times of kernels on a device without tiles and waves (a CPU), which go before the "
              "formulas; `shardwright probe` and `calibrate` write them",
              [&](KernelCurve& curve) { describe(curve, fields); });
  describe_price(accelerator.price, fields);
  fields.text("notes", accelerator.notes, kOmissible, "what a reader of the profile should know");
}

AcceleratorSpec read_accelerator(const json& document, const std::string& pointer,
                                 ProblemList& problems, std::vector<std::string>& filled_in) {
  AcceleratorSpec spec;
  const std::size_t known_problems = problems.size();
  read_figures(document, pointer, problems, spec.sources, filled_in,
               [&](FieldVisitor& fields) { describe(spec, fields); });
  // Stand-ins of refused values would break further rules.
  if (problems.size() == known_problems) check_accelerator(spec, pointer, problems);
  return spec;
}

AcceleratorSpec read_accelerator(const json& document, const std::string& source) {
  ProblemList problems(source);
  std::vector<std::string> filled_in;
  AcceleratorSpec spec = read_accelerator(document, "", problems, filled_in);
  problems.throw_if_any();
  return spec;
}

ordered_json to_json(const AcceleratorSpec& spec) {
  ordered_json document = write_spec(spec, spec.sources);
  attach_sources(document, spec.sources);
  return document;
}

}  // namespace shardwright
