#include "sim/validation/kernel_columns.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "sim/validation/json_lines.hpp"
#include "sim/validation/row_notes.hpp"
#include "sim/validation/row_words.hpp"

namespace shardwright::sim {
namespace {

// So that products of two sizes are integers too.
constexpr IntegerRange kSize{1, 1'000'000'000};
constexpr IntegerRange kParameters{1, 1'000'000'000'000};

constexpr std::string_view kBackward = "_bwd";

// One pass after the other stays what it is; without one the row says neither.
std::string attention_in(const std::string& words) {
  const bool forward = says_any(words, {"fwd", "forward"});
  const bool backward = says_any(words, {"bwd", "back"});
  return std::string("attention") + (forward ? "_fwd" : "") + (backward ? "_bwd" : "");
}

// "silu_and_mul", "fused SwiGLU forward", "gelu backward"; empty for other ops.
std::string activation_in(std::string words) {
  const bool backward = words.ends_with("bwd") || words.ends_with("backward");
  for (const std::string_view part : {"forward", "fwd", "backward", "bwd"})
    if (words.ends_with(part)) words.resize(words.size() - part.size());
  if (words.starts_with("fused")) words.erase(0, 5);
  if (is_any(words, {"siluandmul", "silumul"})) words = "swiglu";
  if (is_any(words, {"geluandmul", "gelumul"})) words = "geglu";
  if (!is_activation(words)) return "";
  return words + (backward ? std::string(kBackward) : "");
}

// Adam and AdamW, which read and write the same; not with states of 8 bits.
bool names_adam(const std::string& words) {
  return words.find("adam") != std::string::npos && !says_any(words, {"8bit", "adamax", "cpu"});
}

// As m, n and k, or as a "shape" of these three.
void read_product(ObjectReader& row, KernelColumns& columns) {
  columns.m = row.integer_or("m", row.integer_or("M", 0, kSize), kSize);
  columns.n = row.integer_or("n", row.integer_or("N", 0, kSize), kSize);
  columns.k = row.integer_or("k", row.integer_or("K", 0, kSize), kSize);
  if (std::max({columns.m, columns.n, columns.k}) > 0 || !row.raw("shape").is_array()) return;
  const std::vector<std::int64_t> shape = row.integers("shape", kSize);
  if (shape.size() != 3) return;
  columns.m = shape[0];
  columns.n = shape[1];
  columns.k = shape[2];
}

}  // namespace

bool is_pass(const std::string& op) {
  return is_any(op, {"softmax", "layernorm", "rmsnorm"});
}

bool is_gated_activation(const std::string& op) {
  return op.starts_with("swiglu") || op.starts_with("geglu") || op.starts_with("reglu");
}

bool is_activation(const std::string& op) {
  const std::string_view forward =
      op.ends_with(kBackward) ? std::string_view(op).substr(0, op.size() - kBackward.size())
                              : std::string_view(op);
  return is_any(forward, {"swiglu", "geglu", "reglu", "silu", "swish", "gelu", "relu"});
}

bool is_copy(const KernelColumns& columns) {
  return columns.op == "memcpy";
}

bool is_grouped_gemm(const KernelColumns& columns) {
  return columns.op == "grouped_gemm" || (columns.op == "gemm" && columns.groups > 1);
}

bool is_optimizer(const KernelColumns& columns) {
  return columns.op == "adam";
}

std::string kernel_op_in(const std::string& text) {
  std::string words = letters_and_digits(text);
  if (is_any(words,
             {"gemm", "matmul", "mm", "bmm", "addmm", "linear", "hgemm", "sgemm", "batchedgemm",
              "stridedbatchedgemm", "gemmex", "matrixmultiply", "matrixmultiplication"}))
    return "gemm";
  if (says_any(words, {"groupedgemm", "groupgemm", "groupedmm", "groupedmatmul", "moegemm"}))
    return "grouped_gemm";
  if (is_pass(words)) return words;
  if (is_any(words, {"copy", "memcpy", "memcpyd2d", "memcpyh2d", "memcpyd2h", "d2d", "h2d", "d2h",
                     "streamcopy", "streamscale", "streamadd", "streamtriad", "triad"}))
    return "memcpy";
  if (std::string activation = activation_in(words); !activation.empty()) return activation;
  if (names_adam(words)) return "adam";
  const bool attends = says_any(words, {"attention", "attn", "fmha", "sdpa"});
  return attends && text.rfind("attention", 0) != 0 ? attention_in(words) : text;
}

KernelColumns read_kernel_columns(ObjectReader& row) {
  KernelColumns columns;
  columns.stated_op = row.text_or("op", "");
  columns.op = kernel_op_in(columns.stated_op);
  columns.dtype = row.text_or("dtype", "");
  columns.stage = row.text_or("stage", "");
  columns.implementation = row.text_or("impl", "");
  columns.notes = row.text_or("notes", "");
  columns.gradient_format = row.text_or("main_grad_dtype", "");
  columns.result_format = row.text_or("out_dtype", "");
  read_product(row, columns);
  columns.batch = row.integer_or("batch", 1, kSize);
  const bool grouped = columns.op == "grouped_gemm";
  columns.groups =
      row.integer_or("groups", grouped ? row.integer_or("experts", 0, kSize) : 0, kSize);
  columns.heads = row.integer_or("heads", 0, kSize);
  columns.kv_heads = row.integer_or("kv_heads", columns.heads, kSize);
  columns.tokens = row.integer_or("seq", row.integer_or("seq_len", 0, kSize), kSize);
  columns.head_dim = row.integer_or("head_dim", 0, kSize);
  columns.v_head_dim = row.integer_or("v_head_dim", columns.head_dim, kSize);
  columns.accumulates = row.boolean_or("accumulate", false);
  columns.mask_known = row.has("causal");
  columns.causal = row.boolean_or("causal", false);
  columns.tflops = row.number_or("tflops", row.number_or("gflops", 0.0) / 1e3);
  columns.gigabytes_per_s = row.number_or("gb_s", 0.0);
  columns.time = time_of(row);
  columns.rows = row.integer_or("rows", columns.m, kSize);
  columns.width = row.integer_or("hidden", row.integer_or("cols", columns.n, kSize), kSize);
  if (is_optimizer(columns))
    columns.parameters =
        row.integer_or("params", row.integer_or("parameters", 0, kParameters), kParameters);
  if (is_copy(columns))
    columns.bytes = Bytes(row.number_or("size_bytes", row.number_or("bytes", 0.0)));
  return columns;
}

}  // namespace shardwright::sim
