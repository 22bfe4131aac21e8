#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <variant>

#include "core/base/json_lines.hpp"
#include "core/base/nearest_name.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/cost/matrix_peak.hpp"
#include "validation/timing_report.hpp"

namespace shardwright::validation {
namespace {

using Kernel = calibration::KernelTiming::Kernel;

constexpr IntegerRange kSizes{1, 1'000'000'000'000'000'000};

// The kinds of kernels that a step runs on a device.
GemmWork read_gemm_work(ObjectReader& row) {
  GemmWork work;
  work.m = row.integer("m", kSizes);
  work.n = row.integer("n", kSizes);
  work.k = row.integer("k", kSizes);
  work.batch = row.integer_or("batch", work.batch, kSizes);
  work.groups = row.integer_or("groups", work.groups, kSizes);
  work.groups_share_k = row.boolean_or("groups_share_k", work.groups_share_k);
  work.accumulate_fp32 = row.boolean_or("accumulate_fp32", work.accumulate_fp32);
  return work;
}

AttentionWork read_attention_work(ObjectReader& row) {
  AttentionWork work;
  work.batch = row.integer("batch", kSizes);
  work.heads = row.integer("heads", kSizes);
  work.kv_heads = row.integer("kv_heads", kSizes);
  work.q_tokens = row.integer("q_tokens", kSizes);
  work.kv_tokens = row.integer("kv_tokens", kSizes);
  work.qk_head_dim = row.integer("qk_head_dim", kSizes);
  work.v_head_dim = row.integer("v_head_dim", kSizes);
  work.score_share = row.number("score_share_ratio", kRatio);
  work.backward = row.boolean_or("backward", work.backward);
  return work;
}

MemoryWork read_memory_work(ObjectReader& row) {
  MemoryWork work;
  work.read = Bytes(row.number("read_bytes", kNonNegative));
  work.written = Bytes(row.number("written_bytes", kNonNegative));
  return work;
}

Kernel read_kernel(ObjectReader row) {
  Kernel kernel;
  kernel.kind =
      static_cast<OpKind>(row.choose("kind", names_of<OpKind>().first(index_of(OpKind::Offload))));
  if (is_matrix_product(kernel.kind))
    kernel.work = read_gemm_work(row);
  else if (kernel.kind == OpKind::Attention)
    kernel.work = read_attention_work(row);
  else
    kernel.work = read_memory_work(row);
  kernel.call = Seconds(row.number_or("call_s", 0.0));
  row.refuse_unknown_keys();
  return kernel;
}

void read_what_ran(ObjectReader& row, calibration::KernelTiming& timing) {
  static const std::vector<std::string> kAccelerators = shipped_accelerators();
  timing.accelerator = row.name("accelerator");
  if (std::find(kAccelerators.begin(), kAccelerators.end(), timing.accelerator) ==
      kAccelerators.end())
    row.problem_with("accelerator", one_of(timing.accelerator, kAccelerators));
  timing.precision = row.choice<Precision>("precision");
  for (ObjectReader& kernel : row.objects("kernels")) timing.kernels.push_back(read_kernel(kernel));
  StackSpec& stack = timing.stack;
  stack.fusion.grouped_gemm = row.boolean_or("one_kernel_for_all_groups", false);
  stack.host.launch_time = Seconds(row.number_or("issue_s", stack.host.launch_time.value()));
  stack.fusion.hopper_attention_kernel_ratio =
      row.number_or("attention_kernel_ratio", stack.fusion.hopper_attention_kernel_ratio, kRatio);
  timing.burst = row.boolean_or("burst", false);
  timing.measured = Seconds(row.number("measured_s"));
}

calibration::KernelTiming read_kernel_row(ObjectReader& row) {
  calibration::KernelTiming timing;
  read_origin(row, timing);
  timing.gpu = row.text_or("device", "");
  timing.op = row.text_or("op", "");
  if (timing.unsupported.empty()) read_what_ran(row, timing);
  row.refuse_unknown_keys();
  return timing;
}

// The work of all kernels of a timing.
struct Done {
  Flop flop;
  // Traffic of the memory-bound kernels.
  Bytes moved;
};

Done done_by(const calibration::KernelTiming& timing) {
  Done done;
  for (const Kernel& kernel : timing.kernels) {
    if (const auto* gemm = std::get_if<GemmWork>(&kernel.work)) done.flop += gemm->flop();
    if (const auto* attention = std::get_if<AttentionWork>(&kernel.work))
      done.flop += attention->flop();
    if (const auto* memory = std::get_if<MemoryWork>(&kernel.work))
      done.moved += memory->read + memory->written;
  }
  return done;
}

// Returns why no kernel of this device can have been so fast; empty if one can. The margin is there
// because datasheets round, and clocks may be a little above those that they assume.
std::string rate_gap(const calibration::KernelTiming& timing, const AcceleratorSpec& accelerator) {
  constexpr double kMargin = 1.05;
  const Done done = done_by(timing);
  if (done.flop > Flop(0)) {
    const FlopPerSecond rate = done.flop / timing.measured;
    const FlopPerSecond peak = sim::matrix_peak(accelerator, timing.precision);
    if (rate <= peak * kMargin) return "";
    return fmt::format("{} are above the device's peak of {}", format_flop_rate(rate),
                       format_flop_rate(peak));
  }
  // Data that fits into the cache may be moved faster.
  const BytesPerSecond rate = done.moved / timing.measured;
  if (rate <= accelerator.memory_bandwidth * kMargin || done.moved <= accelerator.l2_cache)
    return "";
  return fmt::format("{} are above the device's memory bandwidth of {}", format_bandwidth(rate),
                     format_bandwidth(accelerator.memory_bandwidth));
}

// Says why the device cannot have run the timing's kernels, or not so fast; empty if it can.
std::string gap_of(const calibration::KernelTiming& timing, const AcceleratorSpec& accelerator) {
  const bool multiplies = accelerator.matrix.of(timing.precision) > FlopPerSecond(0);
  const bool in_16_bits =
      timing.precision == Precision::Bf16 || timing.precision == Precision::Fp16;
  const bool needs_units =
      casts_operands(timing.precision) || (in_16_bits && done_by(timing).flop > Flop(0));
  if (needs_units && !multiplies)
    return fmt::format("{} does not multiply in {}", accelerator.name, name_of(timing.precision));
  return rate_gap(timing, accelerator);
}

// What is known of a device that timings name.
struct Device {
  // None without a name.
  std::optional<AcceleratorSpec> accelerator;
  // Read once a timing of the device is a burst.
  std::optional<std::vector<MeasuredKernel>> bursts;
};

TimingComparison compare(const calibration::KernelTiming& timing, Device& device) {
  TimingComparison row = described(timing);
  row.op = timing.op;
  const std::optional<AcceleratorSpec>& accelerator = device.accelerator;
  if (accelerator && row.reason.empty()) row.reason = gap_of(timing, *accelerator);
  row.skipped = !row.reason.empty();
  if (row.skipped) return row;
  row.profile = accelerator->name;
  if (timing.burst && !device.bursts)
    device.bursts = calibration::burst_kernels(timing.accelerator);
  row.predicted =
      timing.burst ? predict(timing, *accelerator, *device.bursts) : predict(timing, *accelerator);
  return row;
}

}  // namespace

std::vector<calibration::KernelTiming> read_kernel_timings(const std::string& file) {
  std::ifstream stream = open_json_lines(file);
  return read_kernel_timings(stream, file);
}

std::vector<calibration::KernelTiming> read_kernel_timings(std::istream& stream,
                                                           const std::string& source) {
  std::vector<calibration::KernelTiming> timings;
  read_typed_lines(stream, source,
                   [&](ObjectReader& row) { timings.push_back(read_kernel_row(row)); });
  return timings;
}

TimingReport validate_kernels(const std::string& file) {
  std::vector<TimingComparison> rows;
  std::map<std::string, Device> devices;
  for (const calibration::KernelTiming& timing : read_kernel_timings(file)) {
    const auto [found, is_new] = devices.try_emplace(timing.accelerator);
    if (is_new)
      found->second.accelerator = calibration::benchmarked_accelerator(timing.accelerator);
    rows.push_back(compare(timing, found->second));
  }
  return report_on(std::move(rows));
}

}  // namespace shardwright::validation
