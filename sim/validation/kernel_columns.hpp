// The columns of a published timing of a kernel, and the spellings of its op.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/json_reader.hpp"
#include "core/base/units.hpp"

namespace shardwright::sim {

// Optional columns are 0, "" or false where the source does not say.
struct KernelColumns {
  std::string stated_op;
  std::string op;  // as `kernel_op_in` has it
  std::string dtype, stage, implementation, notes, gradient_format, result_format;
  std::int64_t m = 0, n = 0, k = 0, batch = 1, groups = 0;
  std::int64_t heads = 0, kv_heads = 0, tokens = 0, head_dim = 0, v_head_dim = 0;
  std::int64_t rows = 0, width = 0;  // of what goes over the rows of a matrix: of the result
  std::int64_t parameters = 0;       // of an optimizer's step
  Bytes bytes;                       // that a copy moves
  bool accumulates = false, causal = false, mask_known = false;
  double tflops = 0.0, gigabytes_per_s = 0.0;
  Seconds time;
};

// The spellings of an op: "gemm" ("GEMM", "matmul"), "grouped_gemm", "attention_fwd"
// ("flash_attention_forward"), "layernorm", "swiglu" and "gelu" (with "_bwd"), "adam"
// ("fused_adam", "AdamW"), "memcpy" ("copy", "stream triad"). Others as they are.
std::string kernel_op_in(const std::string& text);

bool is_grouped_gemm(const KernelColumns& columns);
bool is_copy(const KernelColumns& columns);
bool is_optimizer(const KernelColumns& columns);
// Of a gate and a linear part, or of one input.
bool is_gated_activation(const std::string& op);
bool is_activation(const std::string& op);
// Ops that go over the rows of a matrix: norms and softmax.
bool is_pass(const std::string& op);

KernelColumns read_kernel_columns(ObjectReader& row);

}  // namespace shardwright::sim
