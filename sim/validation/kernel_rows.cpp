// Typed rows of kernels: reading and writing.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <variant>

#include "core/base/nearest_name.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/validation/json_lines.hpp"
#include "sim/validation/kernel_timing.hpp"
#include "sim/validation/measurement_json.hpp"

namespace shardwright::sim {
namespace {

using nlohmann::ordered_json;
using Kernel = KernelTiming::Kernel;

constexpr IntegerRange kSizes{1, 1'000'000'000'000'000'000};

const EnumNames<Precision>& precisions() {
  static const EnumNames<Precision> kNames = [] {
    EnumNames<Precision> names;
    for (const Precision precision : kPrecisions) names.emplace_back(name_of(precision), precision);
    return names;
  }();
  return kNames;
}

// The kinds of kernels that a step runs on a device.
const EnumNames<OpKind>& kernel_kinds() {
  static const auto kNames = enum_names<OpKind>(static_cast<int>(OpKind::Offload));
  return kNames;
}

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

void add_work(const GemmWork& work, ordered_json& row) {
  row["m"] = work.m;
  row["n"] = work.n;
  row["k"] = work.k;
  if (work.batch != 1) row["batch"] = work.batch;
  if (work.groups != 1) row["groups"] = work.groups;
  if (work.groups_share_k) row["groups_share_k"] = true;
  if (work.accumulate_fp32) row["accumulate_fp32"] = true;
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

void add_work(const AttentionWork& work, ordered_json& row) {
  row["batch"] = work.batch;
  row["heads"] = work.heads;
  row["kv_heads"] = work.kv_heads;
  row["q_tokens"] = work.q_tokens;
  row["kv_tokens"] = work.kv_tokens;
  row["qk_head_dim"] = work.qk_head_dim;
  row["v_head_dim"] = work.v_head_dim;
  row["score_share_ratio"] = work.score_share;
  if (work.backward) row["backward"] = true;
}

MemoryWork read_memory_work(ObjectReader& row) {
  MemoryWork work;
  work.read = Bytes(row.number("read_bytes", kNonNegative));
  work.written = Bytes(row.number("written_bytes", kNonNegative));
  return work;
}

void add_work(const MemoryWork& work, ordered_json& row) {
  row["read_bytes"] = work.read.value();
  row["written_bytes"] = work.written.value();
}

Kernel read_kernel(ObjectReader row) {
  Kernel kernel;
  kernel.kind = row.choice("kind", kernel_kinds());
  if (kernel.kind == OpKind::Gemm || kernel.kind == OpKind::GroupedGemm)
    kernel.work = read_gemm_work(row);
  else if (kernel.kind == OpKind::Attention)
    kernel.work = read_attention_work(row);
  else
    kernel.work = read_memory_work(row);
  kernel.call = Seconds(row.number_or("call_s", 0.0));
  row.refuse_unknown_keys();
  return kernel;
}

ordered_json kernel_json(const Kernel& kernel) {
  ordered_json row = {{"kind", name_of(kernel.kind)}};
  if (const auto* gemm = std::get_if<GemmWork>(&kernel.work)) add_work(*gemm, row);
  if (const auto* attention = std::get_if<AttentionWork>(&kernel.work)) add_work(*attention, row);
  if (const auto* memory = std::get_if<MemoryWork>(&kernel.work)) add_work(*memory, row);
  if (kernel.call > Seconds(0)) row["call_s"] = kernel.call.value();
  return row;
}

KernelTiming read_kernel_row(ObjectReader& row) {
  KernelTiming timing;
  timing.id = row.name("id");
  timing.source = read_published_source(row.object("source")).title;
  row.boolean_or("verified", false);
  timing.gpu = row.text_or("device", "");
  timing.unsupported = row.text_or("unsupported", "");
  timing.op = row.text_or("op", "");
  if (row.has("assumed")) timing.filled_in = row.texts("assumed");
  row.text_or("notes", "");
  if (timing.unsupported.empty()) {
    static const std::vector<std::string> kAccelerators = shipped_accelerators();
    timing.accelerator = row.name("accelerator");
    if (std::find(kAccelerators.begin(), kAccelerators.end(), timing.accelerator) ==
        kAccelerators.end())
      row.problem_with("accelerator", one_of(timing.accelerator, kAccelerators));
    timing.precision = row.choice("precision", precisions());
    for (ObjectReader& kernel : row.objects("kernels"))
      timing.kernels.push_back(read_kernel(kernel));
    StackSpec& stack = timing.stack;
    stack.fused_grouped_gemm = row.boolean_or("one_kernel_for_all_groups", false);
    stack.launch_time = Seconds(row.number_or("issue_s", stack.launch_time.value()));
    stack.hopper_attention_kernel_ratio =
        row.number_or("attention_kernel_ratio", stack.hopper_attention_kernel_ratio, kRatio);
    timing.measured = Seconds(row.number("measured_s"));
  }
  row.refuse_unknown_keys();
  return timing;
}

}  // namespace

std::vector<KernelTiming> read_typed_kernels(std::istream& stream, const std::string& source) {
  std::vector<KernelTiming> timings;
  read_typed_lines(stream, source,
                   [&](ObjectReader& row) { timings.push_back(read_kernel_row(row)); });
  return timings;
}

ordered_json to_json(const KernelTiming& timing, const PublishedSource& source, bool verified,
                     const std::string& notes) {
  ordered_json row = {{"id", timing.id}, {"source", to_json(source)}, {"verified", verified}};
  const auto add = [&row](const char* key, const auto& value) {
    if (!value.empty()) row[key] = value;
  };
  add("device", timing.gpu);
  add("op", timing.op);
  if (timing.unsupported.empty()) {
    const StackSpec usual;
    const StackSpec& stack = timing.stack;
    row["accelerator"] = timing.accelerator;
    row["precision"] = name_of(timing.precision);
    row["kernels"] = ordered_json::array();
    bool grouped = false;
    for (const Kernel& kernel : timing.kernels) {
      row["kernels"].push_back(kernel_json(kernel));
      grouped = grouped || kernel.kind == OpKind::GroupedGemm;
    }
    if (stack.fused_grouped_gemm) row["one_kernel_for_all_groups"] = true;
    if (grouped && !stack.fused_grouped_gemm) row["issue_s"] = stack.launch_time.value();
    if (stack.hopper_attention_kernel_ratio != usual.hopper_attention_kernel_ratio)
      row["attention_kernel_ratio"] = stack.hopper_attention_kernel_ratio;
    row["measured_s"] = timing.measured.value();
  }
  add("assumed", timing.filled_in);
  add("notes", notes);
  add("unsupported", timing.unsupported);
  return row;
}

}  // namespace shardwright::sim
