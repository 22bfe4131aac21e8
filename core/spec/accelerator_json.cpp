// Reading and writing accelerator profiles.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/spec/cluster_json.hpp"
#include "core/spec/cost_curve_json.hpp"
#include "core/spec/figures.hpp"
#include "core/spec/price_json.hpp"

namespace shardwright {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// A format that the profile leaves out is one that the device cannot multiply in.
FlopPerSecond peak(ObjectReader& matrix, const char* key) {
  return FlopPerSecond(matrix.number_or(key, 0.0));
}

MatrixPeaks read_peaks(ObjectReader matrix) {
  MatrixPeaks peaks{.fp32 = peak(matrix, "fp32_flop_per_s"),
                    .tf32 = peak(matrix, "tf32_flop_per_s"),
                    .fp16 = peak(matrix, "fp16_flop_per_s"),
                    .bf16 = peak(matrix, "bf16_flop_per_s"),
                    .fp8 = peak(matrix, "fp8_flop_per_s"),
                    .fp4 = peak(matrix, "fp4_flop_per_s")};
  if (std::max({peaks.fp16, peaks.bf16, peaks.fp32}) <= FlopPerSecond(0.0))
    matrix.problem("", "no format", "fp16_flop_per_s, bf16_flop_per_s or fp32_flop_per_s");
  matrix.refuse_unknown_keys();
  return peaks;
}

constexpr NumberRange kShortTime{0.0, 1.0, false};

void read_gemm_efficiency(ObjectReader& object, FillIn& fill, KernelEfficiency& efficiency) {
  const std::string reason = "typical of vendor libraries";
  efficiency.gemm_overhead = Seconds(
      fill.number(object, "gemm_overhead_s", efficiency.gemm_overhead.value(), kShortTime, reason));
  efficiency.wave_loss =
      fill.number(object, "wave_loss_ratio", efficiency.wave_loss, kRatioOrZero, reason);
  efficiency.operand_bandwidth_ratio = fill.number(
      object, "operand_bandwidth_ratio", efficiency.operand_bandwidth_ratio, kPositive, reason);
  efficiency.result_exposed =
      fill.number(object, "result_exposed_ratio", efficiency.result_exposed, kRatioOrZero, reason);
  efficiency.power_slowdown = fill.number(object, "power_slowdown_ratio", efficiency.power_slowdown,
                                          kNonNegative, "no throttling known");
  efficiency.power_delay = Seconds(fill.number(
      object, "power_delay_s", efficiency.power_delay.value(), {0.0, 1.0, true}, reason));
}

// Defaults are KernelEfficiency's.
void read_efficiency(ObjectReader object, FillIn& fill, AcceleratorSpec& spec) {
  KernelEfficiency& efficiency = spec.efficiency;
  const std::string reason = "typical of vendor libraries";
  efficiency.matrix = fill.number(object, "matrix_ratio", efficiency.matrix, kRatio, reason);
  efficiency.matrix_main_loop =
      fill.number(object, "matrix_main_loop_ratio", efficiency.matrix_main_loop, kRatioOrZero,
                  "not fitted, the matrix ratio stands in");
  efficiency.matrix_tf32 =
      fill.number(object, "matrix_tf32_ratio", efficiency.matrix_tf32, kRatio, reason);
  efficiency.matrix_fp8 =
      fill.number(object, "matrix_fp8_ratio", efficiency.matrix_fp8, kRatio, reason);
  efficiency.memory = fill.number(object, "memory_ratio", efficiency.memory, kRatio, reason);
  efficiency.attention_forward =
      fill.number(object, "attention_forward_ratio", efficiency.attention_forward, kRatio, reason);
  efficiency.attention_backward = fill.number(object, "attention_backward_ratio",
                                              efficiency.attention_backward, kRatio, reason);
  efficiency.kernel_overhead = Seconds(fill.number(
      object, "kernel_overhead_s", efficiency.kernel_overhead.value(), kShortTime, reason));
  read_gemm_efficiency(object, fill, efficiency);
  efficiency.l2_bandwidth_ratio =
      fill.number(object, "l2_bandwidth_ratio", efficiency.l2_bandwidth_ratio, kPositive, reason);
  efficiency.l2_share = fill.number(object, "l2_share_ratio", efficiency.l2_share, kRatio, reason);
  efficiency.host_link =
      fill.number(object, "host_link_ratio", efficiency.host_link, kRatio, reason);
  spec.sustained_clock_ratio =
      fill.number(object, "sustained_clock_ratio", 1.0, kRatio, "no throttling known");
  spec.sustained_fp8_clock_ratio = object.number_or("sustained_fp8_clock_ratio", 0.0, kRatio);
  // Known of few devices; without it all are taken to be alike.
  spec.speed_variation =
      object.number_or("speed_variation_ratio", spec.speed_variation, {0.0, 0.2, false});
  object.refuse_unknown_keys();
}

void read_memory(ObjectReader memory, FillIn& fill, AcceleratorSpec& spec) {
  spec.memory = Bytes(memory.number("capacity_bytes"));
  spec.memory_bandwidth = BytesPerSecond(memory.number("bandwidth_bytes_per_s"));
  spec.l2_cache =
      Bytes(fill.number(memory, "l2_cache_bytes", 40e6, kPositive, "as large as an A100's"));
  memory.refuse_unknown_keys();
}

void read_power(ObjectReader power, FillIn& fill, AcceleratorSpec& spec) {
  spec.power = Watts(fill.number(power, "design_w", 700.0, kPositive, "as an H100 SXM"));
  spec.idle_power = Watts(fill.number(power, "idle_w", 0.1 * spec.power.value(), kNonNegative,
                                      "a tenth of the design power"));
  if (spec.idle_power > spec.power) {
    power.problem("idle_w", fmt::format("{}", spec.idle_power.value()),
                  fmt::format("at most the design power of {}", spec.power.value()));
  }
  power.refuse_unknown_keys();
}

ordered_json peaks_json(const MatrixPeaks& peaks) {
  ordered_json result = ordered_json::object();
  const auto add = [&result](const char* key, FlopPerSecond rate) {
    if (rate.value() > 0.0) result[key] = rate.value();
  };
  add("fp32_flop_per_s", peaks.fp32);
  add("tf32_flop_per_s", peaks.tf32);
  add("fp16_flop_per_s", peaks.fp16);
  add("bf16_flop_per_s", peaks.bf16);
  add("fp8_flop_per_s", peaks.fp8);
  add("fp4_flop_per_s", peaks.fp4);
  return result;
}

}  // namespace

AcceleratorSpec read_accelerator(const json& document, const std::string& pointer,
                                 ProblemList& problems, std::vector<std::string>& filled_in) {
  AcceleratorSpec spec;
  const json plain = separate_figures(document, pointer, problems, spec.sources);
  ObjectReader object(plain, pointer, problems);
  FillIn fill(pointer, spec.sources, filled_in);
  object.allow("sources");
  check_schema(object, "shardwright/accelerator");
  spec.name = object.name("name");
  spec.vendor = object.text_or("vendor", "");
  spec.architecture = object.text_or("architecture", "");
  if (object.has("aliases")) spec.aliases = object.texts("aliases");
  spec.matrix = read_peaks(object.object("matrix"));
  spec.vector_fp32 = FlopPerSecond(fill.number(
      object, "vector_fp32_flop_per_s",
      std::max({spec.matrix.fp16, spec.matrix.bf16, FlopPerSecond(16.0)}).value() / 16.0, kPositive,
      "a sixteenth of the 16-bit matrix peak"));
  read_memory(object.object("memory"), fill, spec);
  spec.compute_units = fill.integer(object, "compute_units", 132, {1, 1'000'000}, "as an H100 SXM");
  spec.max_clock =
      Hertz(fill.number(object, "max_clock_hz", 1.8e9, kPositive, "typical of the field"));
  read_power(section(object, "power"), fill, spec);
  read_efficiency(section(object, "efficiency"), fill, spec);
  spec.kernel_curves = read_kernel_curves(object, "kernel_curves");
  spec.price = read_price(object);
  spec.notes = object.text_or("notes", "");
  object.refuse_unknown_keys();
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
  ordered_json document = {
      {"schema", "shardwright/accelerator"},
      {"version", 1},
      {"name", spec.name},
      {"vendor", spec.vendor},
      {"architecture", spec.architecture},
      {"aliases", spec.aliases},
      {"matrix", peaks_json(spec.matrix)},
      {"vector_fp32_flop_per_s", spec.vector_fp32.value()},
      {"memory",
       {{"capacity_bytes", spec.memory.value()},
        {"bandwidth_bytes_per_s", spec.memory_bandwidth.value()},
        {"l2_cache_bytes", spec.l2_cache.value()}}},
      {"compute_units", spec.compute_units},
      {"max_clock_hz", spec.max_clock.value()},
      {"power", {{"design_w", spec.power.value()}, {"idle_w", spec.idle_power.value()}}},
      {"efficiency",
       {{"matrix_ratio", spec.efficiency.matrix},
        {"matrix_main_loop_ratio", spec.efficiency.matrix_main_loop},
        {"matrix_tf32_ratio", spec.efficiency.matrix_tf32},
        {"matrix_fp8_ratio", spec.efficiency.matrix_fp8},
        {"memory_ratio", spec.efficiency.memory},
        {"attention_forward_ratio", spec.efficiency.attention_forward},
        {"attention_backward_ratio", spec.efficiency.attention_backward},
        {"kernel_overhead_s", spec.efficiency.kernel_overhead.value()},
        {"gemm_overhead_s", spec.efficiency.gemm_overhead.value()},
        {"wave_loss_ratio", spec.efficiency.wave_loss},
        {"operand_bandwidth_ratio", spec.efficiency.operand_bandwidth_ratio},
        {"result_exposed_ratio", spec.efficiency.result_exposed},
        {"power_slowdown_ratio", spec.efficiency.power_slowdown},
        {"power_delay_s", spec.efficiency.power_delay.value()},
        {"l2_bandwidth_ratio", spec.efficiency.l2_bandwidth_ratio},
        {"l2_share_ratio", spec.efficiency.l2_share},
        {"host_link_ratio", spec.efficiency.host_link},
        {"sustained_clock_ratio", spec.sustained_clock_ratio}}}};
  if (spec.sustained_fp8_clock_ratio > 0.0)
    document["efficiency"]["sustained_fp8_clock_ratio"] = spec.sustained_fp8_clock_ratio;
  if (spec.speed_variation > 0.0)
    document["efficiency"]["speed_variation_ratio"] = spec.speed_variation;
  if (!spec.kernel_curves.empty()) document["kernel_curves"] = to_json(spec.kernel_curves);
  write_price(document, spec.price, spec.sources);
  if (!spec.notes.empty()) document["notes"] = spec.notes;
  attach_sources(document, spec.sources);
  return document;
}

}  // namespace shardwright
