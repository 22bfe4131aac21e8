#include "calibration/traces/kernel_category.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace shardwright::calibration {
namespace {

struct Family {
  // A part of the name in lower case; after '^' the beginning of the name.
  std::string_view part;
  KernelCategory category;
};

// The first line that fits decides: attention kernels are built of CUTLASS too, and the names of
// Triton kernels list the operators that were fused into them.
constexpr Family kFamilies[] = {
    // NCCL, RCCL, MSCCL, DeepEP, MORI, Transformer Engine's user buffers, and those of
    // PyTorch's symmetric memory, vLLM and TensorRT-LLM.
    {"nccl", KernelCategory::Collective},
    {"msccl", KernelCategory::Collective},
    {"deep_ep::", KernelCategory::Collective},
    {"ep::internode", KernelCategory::Collective},
    {"ep::intranode", KernelCategory::Collective},
    {"mori::ep", KernelCategory::Collective},
    {"moea2a", KernelCategory::Collective},
    {"nvshmem", KernelCategory::Collective},
    {"userbuffers_", KernelCategory::Collective},
    {"shotallreduce", KernelCategory::Collective},
    {"allreduce_fusion", KernelCategory::Collective},
    {"shot_all_reduce", KernelCategory::Collective},
    {"multimem_", KernelCategory::Collective},
    {"cross_device_reduce", KernelCategory::Collective},
    // Copies that ROCm runs as kernels.
    {"__amd_rocclr_copy", KernelCategory::MemoryCopy},
    {"__amd_rocclr_fill", KernelCategory::MemoryCopy},
    // Everything that Inductor fuses, and Triton's templates.
    {"triton_poi_", KernelCategory::Elementwise},
    {"triton_red_", KernelCategory::Elementwise},
    {"triton_per_", KernelCategory::Elementwise},
    {"triton_for_", KernelCategory::Elementwise},
    {"triton__", KernelCategory::Elementwise},
    {"flex_attention", KernelCategory::Attention},
    {"triton_tem_", KernelCategory::Gemm},
    {"triton_mm", KernelCategory::Gemm},
    // Writing of keys and values, which vLLM names after the kernel that reads them.
    {"reshape_and_cache", KernelCategory::Elementwise},
    // FlashAttention, FlashInfer, cuDNN, xFormers and TensorRT-LLM, AOTriton, SageAttention.
    {"kvcachekernel", KernelCategory::Attention},
    {"mergestates", KernelCategory::Attention},
    {"flash", KernelCategory::Attention},
    {"fmha", KernelCategory::Attention},
    {"sdpa", KernelCategory::Attention},
    {"attn_fwd", KernelCategory::Attention},
    {"attn_bwd", KernelCategory::Attention},
    {"attn_kernel", KernelCategory::Attention},
    {"sage_fwd", KernelCategory::Attention},
    {"attention", KernelCategory::Attention},
    {"compute_dot_do_o", KernelCategory::Attention},
    {"bwd_kernel_dk_dv", KernelCategory::Attention},
    {"bwd_kernel_dq", KernelCategory::Attention},
    {"bwd_preprocess", KernelCategory::Attention},
    // cuBLAS, CUTLASS, DeepGEMM, hipBLASLt (Cijk), MIOpen, Composable Kernel, cuDNN's convolutions.
    {"nvjet", KernelCategory::Gemm},
    {"cutlass", KernelCategory::Gemm},
    // FBGEMM, a library named after products, has embeddings, and functions of ATen's element-wise
    // kernels.
    {"elementwise_kernel", KernelCategory::Elementwise},
    {"fbgemm", KernelCategory::Other},
    {"gemm", KernelCategory::Gemm},
    {"gemv", KernelCategory::Gemm},
    {"cijk_", KernelCategory::Gemm},
    {"splitkreduce", KernelCategory::Gemm},
    {"epilogue::impl", KernelCategory::Gemm},
    {"xmma", KernelCategory::Gemm},
    {"matmul", KernelCategory::Gemm},
    {"^bmm_", KernelCategory::Gemm},
    {"fprop", KernelCategory::Gemm},
    {"dgrad", KernelCategory::Gemm},
    {"wgrad", KernelCategory::Gemm},
    {"scudnn", KernelCategory::Gemm},
    {"convolve", KernelCategory::Gemm},
    {"convolution", KernelCategory::Gemm},
    {"conv2d", KernelCategory::Gemm},
    {"winograd", KernelCategory::Gemm},
    {"sp3asmconv", KernelCategory::Gemm},
    {"fft2d", KernelCategory::Gemm},
    {"im2d2col", KernelCategory::Gemm},
    {"ck::", KernelCategory::Gemm},
    {"^_zn2ck", KernelCategory::Gemm},
    // ATen, Apex, Transformer Engine, cuDNN and MIOpen.
    {"elementwise", KernelCategory::Elementwise},
    {"reduce_kernel", KernelCategory::Elementwise},
    {"multi_tensor_apply", KernelCategory::Elementwise},
    {"catarraybatchedcopy", KernelCategory::Elementwise},
    {"routing::", KernelCategory::Other},  // of tokens to experts; it renormalises
    {"norm", KernelCategory::Elementwise},
    {"gammabeta", KernelCategory::Elementwise},
    {"cucomputegradinput", KernelCategory::Elementwise},
    {"cudnn::bn_", KernelCategory::Elementwise},
    {"softmax", KernelCategory::Elementwise},
    {"cross_entropy", KernelCategory::Elementwise},
    {"dropout", KernelCategory::Elementwise},
    {"rope_", KernelCategory::Elementwise},
    {"_rope", KernelCategory::Elementwise},
    {"rotary", KernelCategory::Elementwise},
    {"swiglu", KernelCategory::Elementwise},
    {"act_and_mul", KernelCategory::Elementwise},
    {"gated_act", KernelCategory::Elementwise},
    {"act_kernel", KernelCategory::Elementwise},
    {"gelu", KernelCategory::Elementwise},
    {"silu", KernelCategory::Elementwise},
    {"unary_kernel", KernelCategory::Elementwise},
    {"permute_kernel", KernelCategory::Elementwise},
    {"transpose", KernelCategory::Elementwise},
    {"nchwtonhwc", KernelCategory::Elementwise},
    {"nhwctonchw", KernelCategory::Elementwise},
    {"subtensorop", KernelCategory::Elementwise},
    {"adam", KernelCategory::Elementwise},
    {"cast_kernel", KernelCategory::Elementwise},
    {"cast_mxfp8", KernelCategory::Elementwise},
    {"quantize", KernelCategory::Elementwise},
    {"quant_kernel", KernelCategory::Elementwise},
    {"^triton_", KernelCategory::Elementwise},
};

bool fits(std::string_view name, std::string_view part) {
  return part.front() == '^' ? name.starts_with(part.substr(1))
                             : name.find(part) != std::string_view::npos;
}

constexpr Family kOps[] = {
    {"attention", KernelCategory::Attention},  {"flashattn", KernelCategory::Attention},
    {"flash_attn", KernelCategory::Attention}, {"^aten::mm", KernelCategory::Gemm},
    {"^aten::addmm", KernelCategory::Gemm},    {"^aten::bmm", KernelCategory::Gemm},
    {"^aten::baddbmm", KernelCategory::Gemm},  {"^aten::_scaled_mm", KernelCategory::Gemm},
    {"grouped_mm", KernelCategory::Gemm},      {"^aten::_addmm", KernelCategory::Gemm},
};

// The name in lower case without words that stand in the names of other families: number formats of
// CUTLASS (cutlass::bfloat16_t), and the library FlashInfer, which has kernels of all kinds.
std::string name_of_family(std::string_view kernel) {
  std::string name = lower_case(kernel);
  const auto is_of_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (const std::string_view space : {"cutlass::", "flashinfer::"}) {
    for (std::size_t begin = name.find(space); begin != std::string::npos;
         begin = name.find(space, begin)) {
      std::size_t end = begin + space.size();
      if (space == "cutlass::") {
        while (end < name.size() && is_of_word(name[end])) ++end;
        if (!name.substr(begin, end - begin).ends_with("_t")) {
          begin = end;
          continue;
        }
      }
      name.erase(begin, end - begin);
    }
  }
  return name;
}

template <class Families>
KernelCategory first_category(const std::string& name, const Families& families) {
  for (const Family& family : families)
    if (fits(name, family.part)) return family.category;
  return KernelCategory::Other;
}

// True of a word such as XXT, XTX, AA or cAA: a matrix times itself or its transpose, in the
// notation of algebra.
bool is_square(std::string_view word) {
  const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (!word.empty() && word.front() >= 'a' && word.front() <= 'z') word.remove_prefix(1);
  if (word.size() == 2) return is_capital(word[0]) && word[0] == word[1];
  if (word.size() != 3 || !is_capital(word[0])) return false;
  return (word[1] == word[0] && word[2] == 'T') || (word[2] == word[0] && word[1] == 'T');
}

// True of names with such a word, without types and namespaces: kernels that people write in
// Triton.
bool names_a_square(std::string_view kernel) {
  if (kernel.find_first_of("<(:") != std::string_view::npos) return false;
  for (std::size_t begin = 0; begin <= kernel.size();) {
    const std::size_t end = std::min(kernel.find('_', begin), kernel.size());
    if (is_square(kernel.substr(begin, end - begin))) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

KernelCategory category_of_kernel(std::string_view kernel) {
  const KernelCategory category = first_category(name_of_family(kernel), kFamilies);
  return category == KernelCategory::Other && names_a_square(kernel) ? KernelCategory::Gemm
                                                                     : category;
}

KernelCategory category_of_op(std::string_view op) {
  return first_category(lower_case(op), kOps);
}

std::string collective_kind(std::string_view name) {
  // Longer words first: a reduce-scatter is also named a reduce.
  static constexpr std::pair<std::string_view, const char*> kKinds[] = {
      {"reducescatter", "reduce_scatter"},
      {"allreduce", "all_reduce"},
      {"allgather", "all_gather"},
      {"alltoall", "all_to_all"},
      {"all2all", "all_to_all"},
      {"dispatch", "all_to_all"},
      {"combine", "all_to_all"},
      {"crossdevicereduce", "all_reduce"},
      {"broadcast", "broadcast"},
      {"sendrecv", "send_receive"},
      {"send", "send"},
      {"recv", "receive"},
      {"barrier", "barrier"},
      // Transformer Engine's "userbuffers_fp16_sum_inplace_gpu_mc_ag" and the like.
      {"gpurwag", "all_gather"},
      {"gpumcag", "all_gather"},
      {"gpurrag", "all_gather"},
      {"gpurwrs", "reduce_scatter"},
      {"gpumcrs", "reduce_scatter"},
      {"gpurrrs", "reduce_scatter"},
      {"userbuffersfp16suminplace", "all_reduce"},
      {"reduce", "reduce"},
      {"gather", "gather"},
      {"scatter", "scatter"},
  };
  std::string word = lower_case(name);
  std::erase(word, '_');
  for (const auto& [part, kind] : kKinds)
    if (word.find(part) != std::string::npos) return kind;
  return "";
}

double bus_factor(std::string_view kind, double group_size) {
  if (group_size < 2) return 1.0;
  const double others = (group_size - 1) / group_size;
  if (kind == "all_reduce") return 2 * others;
  if (kind == "all_gather" || kind == "reduce_scatter" || kind == "all_to_all") return others;
  return 1.0;
}

}  // namespace shardwright::calibration
