#include "sim/validation/kernel_timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "core/base/letters_and_digits.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/cost/kernel_cost.hpp"
#include "sim/cost/matrix_peak.hpp"
#include "sim/validation/accelerator_text.hpp"
#include "sim/validation/json_lines.hpp"
#include "sim/validation/kernel_columns.hpp"
#include "sim/validation/negation.hpp"
#include "sim/validation/row_notes.hpp"
#include "sim/validation/row_words.hpp"

namespace shardwright::sim {
namespace {

// Rates over the best kernel of a device, fitted on published attention timings.
constexpr double kFlashAttention2OnHopper = 0.61;
constexpr double kTritonTutorialOnHopper = 0.79;

// What a call into Transformer Engine's attention takes from Python; shorter kernels wait for it.
constexpr Seconds kForwardCall = microseconds(90.0);
constexpr Seconds kBackwardCall = microseconds(105.0);
// Of one GEMM in its loop over experts.
constexpr Seconds kGroupIssue = microseconds(8.8);

// Arrays of 2^25 doubles are BabelStream's default; copies whose size is not given are as large.
constexpr Bytes kStreamArray = Bytes(33554432.0 * 8.0);

using Kernel = KernelTiming::Kernel;

// Groups: `m` is the rows of one. The gradient by the input contracts over n, that by the weight
// over the rows.
GemmWork gemm_of(const KernelColumns& columns) {
  GemmWork work{.m = columns.m, .n = columns.n, .k = columns.k, .batch = columns.batch};
  work.accumulate_fp32 = columns.accumulates && columns.result_format == "fp32";
  if (!is_grouped_gemm(columns)) return work;
  work.groups = columns.groups;
  if (columns.stage == "bwd_grad_w") {
    return {.m = columns.n,
            .n = columns.k,
            .k = columns.m * columns.groups,
            .groups = columns.groups,
            .groups_share_k = true,
            .accumulate_fp32 = columns.gradient_format == "fp32"};
  }
  work.m *= columns.groups;
  if (columns.stage == "bwd_grad_act") std::swap(work.n, work.k);
  return work;
}

// By its rate where the source gives one.
Seconds measured_time(const KernelColumns& columns, Flop work) {
  if (columns.tflops > 0.0) return work / teraflops(columns.tflops);
  return columns.time;
}

Seconds measured_time(const KernelColumns& columns, Bytes moved) {
  if (columns.gigabytes_per_s > 0.0) return moved / gigabytes_per_second(columns.gigabytes_per_s);
  return columns.time;
}

void read_gemm(const KernelColumns& columns, KernelTiming& timing) {
  if (std::min({columns.m, columns.n, columns.k}) < 1) {
    timing.unsupported = "the source does not give the whole shape";
    return;
  }
  const bool grouped = is_grouped_gemm(columns);
  if (grouped && columns.groups == 0) {
    timing.unsupported = "the source does not give the number of groups";
    return;
  }
  const GemmWork work = gemm_of(columns);
  timing.op = fmt::format("{} {}", grouped ? "grouped_gemm" : "gemm", columns.dtype);
  // DeepGEMM runs all groups in one kernel, vendors' libraries run them one by one.
  timing.stack.fused_grouped_gemm = says(timing.source, "deepgemm");
  timing.stack.launch_time = kGroupIssue;
  timing.kernels = {{grouped ? OpKind::GroupedGemm : OpKind::Gemm, work, {}}};
  timing.measured = measured_time(columns, work.flop());
}

AttentionWork attention_of(const KernelColumns& columns, bool backward) {
  return {.batch = columns.batch,
          .heads = columns.heads,
          .kv_heads = columns.kv_heads,
          .q_tokens = columns.tokens,
          .kv_tokens = columns.tokens,
          .qk_head_dim = columns.head_dim,
          .v_head_dim = columns.v_head_dim,
          .score_share = columns.causal ? 0.5 : 1.0,
          .backward = backward};
}

// PyTorch's own operators: products over the whole score matrix, and passes over it: scaling,
// softmax and, with a mask, its filling. Backward: four products, the gradients of softmax and
// mask.
void add_unfused(const KernelColumns& columns, bool backward, KernelTiming& timing) {
  const std::int64_t batch = columns.batch * columns.heads, tokens = columns.tokens;
  const GemmWork scores{.m = tokens, .n = tokens, .k = columns.head_dim, .batch = batch};
  const GemmWork values{.m = tokens, .n = columns.v_head_dim, .k = tokens, .batch = batch};
  const double elements =
      static_cast<double>(batch) * static_cast<double>(tokens) * static_cast<double>(tokens);
  const Bytes matrix = storage_bytes(timing.precision) * elements;
  const double passes = columns.causal ? 3.0 : 2.0;
  for (int repeat = 0; repeat < (backward ? 2 : 1); ++repeat) {
    timing.kernels.push_back({OpKind::Gemm, scores, {}});
    timing.kernels.push_back({OpKind::Gemm, values, {}});
  }
  MemoryWork softmax;
  softmax.read = matrix * (passes + (backward ? 1.0 : 0.0));
  softmax.written = matrix * passes;
  timing.kernels.push_back({OpKind::Softmax, softmax, {}});
}

void set_implementation(const KernelColumns& columns, KernelTiming& timing) {
  const std::string& text = columns.implementation.empty() ? columns.notes : columns.implementation;
  if (says(text, "triton tutorial"))
    timing.stack.hopper_attention_kernel_ratio = kTritonTutorialOnHopper;
  else if (says(text, "flashattention-2"))
    timing.stack.hopper_attention_kernel_ratio = kFlashAttention2OnHopper;
}

// "attention_fwd", "attention_fwd_bwd".
bool names_pass(const std::string& op, bool backward) {
  return op.find(backward ? "bwd" : "fwd") != std::string::npos;
}

std::string attention_gap(const KernelColumns& columns, Precision precision) {
  if (casts_operands(precision))
    return fmt::format("attention on {} operands has no model: training keeps it in 16 bits",
                       name_of(precision));
  if (std::min({columns.heads, columns.tokens, columns.head_dim}) < 1)
    return "the source does not give the whole shape";
  if (columns.kv_heads > columns.heads || columns.heads % columns.kv_heads != 0)
    return fmt::format("{} heads cannot share {} kv_heads", columns.heads, columns.kv_heads);
  if (!names_pass(columns.op, false) && !names_pass(columns.op, true))
    return fmt::format("no model of \"{}\": neither fwd nor bwd", columns.op);
  return columns.mask_known ? "" : "the source does not give the mask";
}

// FlashAttention's convention: a causal mask counts half, the backward pass 2.5 times the forward.
void read_attention(const KernelColumns& columns, KernelTiming& timing) {
  timing.op = fmt::format("{} {}", columns.op, columns.dtype);
  timing.unsupported = attention_gap(columns, timing.precision);
  if (!timing.unsupported.empty()) return;
  set_implementation(columns, timing);
  const bool unfused = says(columns.implementation, "standard");
  const bool calls = says(columns.notes, "transformerengine");
  if (unfused) timing.op = "unfused_" + timing.op;
  double counted = 0.0;
  for (const bool backward : {false, true}) {
    if (!names_pass(columns.op, backward)) continue;
    counted += backward ? 2.5 : 1.0;
    const Seconds call = calls ? (backward ? kBackwardCall : kForwardCall) : Seconds(0);
    if (unfused)
      add_unfused(columns, backward, timing);
    else
      timing.kernels.push_back({OpKind::Attention, attention_of(columns, backward), call});
  }
  timing.measured = measured_time(columns, attention_of(columns, false).flop() * counted);
}

void read_copy(const KernelColumns& columns, KernelTiming& timing) {
  timing.op = "memcpy";
  const std::string text = columns.notes + ' ' + columns.stated_op;
  if (says_any(text, {"host to device", "device to host", "host_to_device", "device_to_host", "H2D",
                      "D2H"})) {
    timing.unsupported = "a copy to or from the host, which is a property of the node";
    return;
  }
  if (says(text, "device to device read") || says(text, "peer")) {
    timing.unsupported = "a copy between devices, which is a property of the node";
    return;
  }
  MemoryWork work;
  const bool sums = says_any(text, {"add", "triad"});
  const bool reads_only = says(text, "dot");
  const Bytes array = columns.bytes > Bytes(0) ? columns.bytes : kStreamArray;
  work.read = array * (sums || reads_only ? 2.0 : 1.0);
  work.written = reads_only ? Bytes(0) : array;
  timing.kernels = {{OpKind::Residual, work, {}}};
  timing.measured = measured_time(columns, work.read + work.written);
}

// A fused pass over a matrix: read once, written once.
void read_pass(const KernelColumns& columns, KernelTiming& timing) {
  if (std::min(columns.rows, columns.width) < 1) {
    timing.unsupported = "the source does not give the whole shape";
    return;
  }
  timing.op = fmt::format("{} {}", columns.op, columns.dtype);
  MemoryWork work;
  work.read = work.written = storage_bytes(timing.precision) * static_cast<double>(columns.rows) *
                             static_cast<double>(columns.width);
  timing.kernels = {{columns.op == "softmax" ? OpKind::Softmax : OpKind::Norm, work, {}}};
  timing.measured = measured_time(columns, work.read + work.written);
}

// As lowered: a gate and a linear part are read beside each other, and backward the gradient.
void read_activation(const KernelColumns& columns, KernelTiming& timing) {
  if (std::min(columns.rows, columns.width) < 1) {
    timing.unsupported = "the source does not give the whole shape";
    return;
  }
  timing.op = fmt::format("{} {}", columns.op, columns.dtype);
  const Bytes result = storage_bytes(timing.precision) * static_cast<double>(columns.rows) *
                       static_cast<double>(columns.width);
  const bool gated = is_gated_activation(columns.op);
  if (gated) timing.filled_in.emplace_back("width: of the result, half of what is read");
  const double inputs = gated ? 2.0 : 1.0;
  const bool backward = names_pass(columns.op, true);
  MemoryWork work;
  work.read = result * (backward ? inputs + 1.0 : inputs);
  work.written = result * (backward ? inputs : 1.0);
  timing.kernels = {{OpKind::Activation, work, {}}};
  timing.measured = measured_time(columns, work.read + work.written);
}

// One kernel over all parameters: gradients are read, weights and both moments in fp32 read and
// written; weights of 16 bits are written beside them.
void read_optimizer(const KernelColumns& columns, KernelTiming& timing) {
  if (columns.parameters < 1) {
    timing.unsupported = "the source does not give the number of parameters";
    return;
  }
  timing.op = fmt::format("{} {}", columns.op, columns.dtype);
  timing.filled_in.emplace_back("states: weights and two moments in fp32");
  constexpr double kStates = 12.0, kWide = 4.0;
  const double element = storage_bytes(timing.precision).value();
  const auto parameters = static_cast<double>(columns.parameters);
  MemoryWork work;
  work.read = Bytes(parameters * (element + kStates));
  work.written = Bytes(parameters * (kStates + (element < kWide ? element : 0.0)));
  timing.kernels = {{OpKind::Optimizer, work, {}}};
  timing.measured = measured_time(columns, work.read + work.written);
}

// Of copies only the bytes count. A format that the source leaves open is the usual one; an
// optimizer's is that of its states.
void set_precision(KernelColumns& columns, KernelTiming& timing) {
  if (is_copy(columns)) return;
  if (columns.dtype.empty()) {
    columns.dtype = name_of(is_optimizer(columns) ? Precision::Fp32 : usual_precision(timing.gpu));
    timing.filled_in.push_back(fmt::format("dtype: {}", columns.dtype));
  }
  const std::optional<Precision> precision = precision_in(columns.dtype);
  timing.precision = precision.value_or(timing.precision);
  if (!precision)
    timing.unsupported = fmt::format("the number format \"{}\" is not modelled", columns.dtype);
}

// Ops whose time is that of their bytes.
bool moves_bytes(const KernelColumns& columns) {
  return is_copy(columns) || is_pass(columns.op) || is_activation(columns.op) ||
         is_optimizer(columns);
}

bool has_model(const KernelColumns& columns) {
  return moves_bytes(columns) || is_any(columns.op, {"gemm", "grouped_gemm"}) ||
         columns.op.rfind("attention", 0) == 0;
}

// "2:4 structured sparsity", "block-sparse".
bool is_sparse(const KernelColumns& columns) {
  const auto says_so = [](const std::string& text) {
    return affirms_any(text, {"2:4", "sparse", "sparsity", "structured spars"});
  };
  return says_so(columns.notes) || says_so(columns.implementation) || says_so(columns.dtype) ||
         says_so(columns.stated_op);
}

// Why nothing can be said of the row, whatever its shape; empty where something can.
std::string gap_of(const KernelColumns& columns, const std::string& gpu) {
  if (gpu.empty() || says(gpu, "unspecified")) return "the source does not name the device";
  if (columns.op.empty()) return "the source does not name the op";
  if (is_sparse(columns)) return "operands with sparsity, which is not modelled";
  if (!has_model(columns)) return fmt::format("no model of \"{}\"", columns.op);
  if (!is_any(columns.stage, {"", "fwd", "bwd_grad_act", "bwd_grad_w"}))
    return fmt::format("no model of the stage \"{}\"", columns.stage);
  for (const std::string& format : {columns.result_format, columns.gradient_format}) {
    if (!format.empty() && !precision_in(format))
      return fmt::format("the number format \"{}\" is not modelled", format);
  }
  const double rate = moves_bytes(columns) ? columns.gigabytes_per_s : columns.tflops;
  // A copy whose size is not given took no time that could be told.
  const bool sized = !is_copy(columns) || columns.bytes > Bytes(0);
  const bool timed = columns.time > Seconds(0) && sized;
  return rate > 0.0 || timed ? "" : "the source gives no rate";
}

KernelTiming read_timing(ObjectReader& row) {
  KernelTiming timing;
  timing.id = row.text_or("id", "");
  timing.source = source_of(row);
  timing.gpu = row.text_or("gpu", "");
  timing.accelerator = read_accelerator_text(timing.gpu, std::nullopt).profile.value_or("");
  KernelColumns columns = read_kernel_columns(row);
  timing.op = columns.op;
  timing.unsupported = gap_of(columns, timing.gpu);
  if (timing.unsupported.empty()) set_precision(columns, timing);
  if (!timing.unsupported.empty()) return timing;
  if (is_copy(columns))
    read_copy(columns, timing);
  else if (is_pass(columns.op))
    read_pass(columns, timing);
  else if (is_activation(columns.op))
    read_activation(columns, timing);
  else if (is_optimizer(columns))
    read_optimizer(columns, timing);
  else if (is_any(columns.op, {"gemm", "grouped_gemm"}))
    read_gemm(columns, timing);
  else
    read_attention(columns, timing);
  return timing;
}

// What the kernels of a timing do.
struct Done {
  Flop flop;
  Bytes moved;  // by those that are limited by it
};

Done done_by(const KernelTiming& timing) {
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

// Why no kernel of this device can have been so fast; empty if one can. Datasheets round, and
// clocks may be a little above those that they assume.
std::string rate_gap(const KernelTiming& timing, const AcceleratorSpec& accelerator) {
  constexpr double kMargin = 1.05;
  const Done done = done_by(timing);
  if (done.flop > Flop(0)) {
    const FlopPerSecond rate = done.flop / timing.measured;
    const FlopPerSecond peak = matrix_peak(accelerator, timing.precision);
    if (rate <= peak * kMargin) return "";
    return fmt::format("{:.0f} TFLOP/s are above the device's peak of {:.0f}",
                       rate / teraflops(1.0), peak / teraflops(1.0));
  }
  // What fits into its caches may be moved faster.
  const BytesPerSecond rate = done.moved / timing.measured;
  if (rate <= accelerator.memory_bandwidth * kMargin || done.moved <= accelerator.l2_cache)
    return "";
  return fmt::format("{:.0f} GB/s are above the device's memory bandwidth of {:.0f}",
                     rate / gigabytes_per_second(1.0),
                     accelerator.memory_bandwidth / gigabytes_per_second(1.0));
}

TimingComparison compare(const KernelTiming& timing,
                         const std::optional<AcceleratorSpec>& accelerator) {
  TimingComparison row;
  row.id = timing.id;
  row.source = timing.source;
  row.device = timing.gpu;
  row.op = timing.op;
  row.filled_in = timing.filled_in;
  row.reason = gap_of(timing, accelerator);
  row.skipped = !row.reason.empty();
  if (row.skipped) return row;
  row.profile = accelerator->name;
  row.measured = timing.measured;
  row.predicted = predict(timing, *accelerator);
  return row;
}

}  // namespace

std::string gap_of(const KernelTiming& timing, const std::optional<AcceleratorSpec>& accelerator) {
  if (!timing.unsupported.empty()) return timing.unsupported;
  if (!accelerator) return fmt::format("no shipped profile of the device \"{}\"", timing.gpu);
  const bool multiplies = accelerator->matrix.of(timing.precision) > FlopPerSecond(0);
  const bool in_16_bits =
      timing.precision == Precision::Bf16 || timing.precision == Precision::Fp16;
  const bool needs_units =
      casts_operands(timing.precision) || (in_16_bits && done_by(timing).flop > Flop(0));
  if (needs_units && !multiplies)
    return fmt::format("{} does not multiply in {}", accelerator->name, name_of(timing.precision));
  return rate_gap(timing, *accelerator);
}

std::vector<KernelTiming> read_kernel_timings(const std::string& file) {
  std::ifstream stream = open_json_lines(file);
  return is_typed(stream) ? read_typed_kernels(stream, file) : read_kernel_timings(stream, file);
}

std::vector<KernelTiming> read_kernel_timings(std::istream& stream, const std::string& source) {
  return read_rows<KernelTiming>(stream, source,
                                 {read_timing, &KernelTiming::unsupported,
                                  "timings of kernels (docs/formats/timing_rows.md)"});
}

std::optional<AcceleratorSpec> benchmarked_accelerator(const std::string& profile) {
  if (profile.empty()) return std::nullopt;
  return at_full_clock(load_accelerator(profile));
}

Seconds predict(const KernelTiming& timing, const AcceleratorSpec& accelerator) {
  Seconds sum;
  for (const auto& [kind, work, call] : timing.kernels) {
    const Seconds kernel =
        formula_cost(kind, work, timing.precision, accelerator, timing.stack).time;
    sum += std::max(kernel, call);
  }
  return sum;
}

TimingReport validate_kernels(const std::string& file) {
  std::vector<TimingComparison> rows;
  std::map<std::string, std::optional<AcceleratorSpec>> accelerators;
  for (const KernelTiming& timing : read_kernel_timings(file)) {
    const auto [found, is_new] = accelerators.try_emplace(timing.accelerator);
    if (is_new) found->second = benchmarked_accelerator(timing.accelerator);
    rows.push_back(compare(timing, found->second));
  }
  return report_on(std::move(rows));
}

}  // namespace shardwright::sim
