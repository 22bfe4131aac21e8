// A trace as PyTorch's profiler writes it, of any length: for each kernel an operator within
// another one, its launch, and the two ends of the arrow between launch and kernel.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace shardwright::calibration {

// One kernel with all that leads to it; `index` counts from zero.
inline void append_kernel(std::string& text, std::int64_t index) {
  constexpr const char* kNames[] = {
      "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize2x1x1_execute_"
      "segment_k_off_kernel__5x_cublas",
      "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add"
      "<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, "
      "std::array<char*, 3ul>)",
      "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, "
      "cutlass::bfloat16_t> >(Flash_fwd_params)",
      "triton_poi_fused_add_mul_silu_7"};
  constexpr const char* kOps[] = {"aten::mm", "aten::add", "flash_attn::_flash_attn_forward",
                                  "triton_poi_fused_add_mul_silu_7"};
  const auto which = static_cast<std::size_t>(index % 4);
  const double begin = 1.7e15 + 10.0 * static_cast<double>(index);
  const std::int64_t op = 3 * index + 1, correlation = 1000 + 2 * index;
  auto to = std::back_inserter(text);
  fmt::format_to(to,
                 R"(  {{
    "ph": "X", "cat": "cpu_op", "name": "{}", "pid": 4711, "tid": 4711,
    "ts": {:.3f}, "dur": 7.250,
    "args": {{
      "External id": {}, "Record function id": 0, "Ev Idx": {}, "Input type": ["c10::BFloat16", "c10::BFloat16"],
      "Input Dims": [[4096, {}], [{}, 4096]]
    }}
  }},
  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::empty", "pid": 4711, "tid": 4711,
    "ts": {:.3f}, "dur": 0.750,
    "args": {{
      "External id": {}, "Record function id": 0, "Ev Idx": {}
    }}
  }},
  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4711, "tid": 4711,
    "ts": {:.3f}, "dur": 4.100,
    "args": {{
      "External id": {}, "cbid": 211, "correlation": {}
    }}
  }},
  {{
    "ph": "s", "id": {}, "pid": 4711, "tid": 4711, "ts": {:.3f}, "cat": "ac2g", "name": "ac2g"
  }},
)",
                 kOps[which], begin, op, op, 1024 + 64 * (index % 7), 1024 + 64 * (index % 7),
                 begin + 0.5, op + 1, op + 1, begin + 2.0, op, correlation, correlation,
                 begin + 2.0);
  fmt::format_to(to,
                 R"(  {{
    "ph": "f", "id": {}, "pid": 0, "tid": 7, "ts": {:.3f}, "cat": "ac2g", "name": "ac2g", "bp": "e"
  }},
  {{
    "ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": 7,
    "ts": {:.3f}, "dur": 9.125,
    "args": {{
      "External id": {}, "queued": 0, "device": 0, "context": 1,
      "stream": 7, "correlation": {}, "registers per thread": 168,
      "shared memory": 196608, "blocks per SM": 1.939394, "warps per SM": 23.272728,
      "grid": [{}, 2, 1], "block": [384, 1, 1],
      "est. achieved occupancy %": 19
    }}
  }},
)",
                 correlation, begin + 20.0, kNames[which], begin + 20.0, op, correlation,
                 64 + index % 97);
}

// Writes `kernels` kernels in five steps: 1.6 GB a million of them.
inline void write_kineto_file(const std::filesystem::path& file, std::int64_t kernels) {
  std::ofstream stream(file, std::ios::binary);
  stream
      << R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
  "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 64}, "traceEvents": [
)";
  std::string text;
  for (std::int64_t i = 0; i < kernels; ++i) {
    append_kernel(text, i);
    if (text.size() < (1U << 20U) && i + 1 < kernels) continue;
    stream << text;
    text.clear();
  }
  for (std::int64_t step = 0; step < 5; ++step) {
    const double length = 2.0 * static_cast<double>(kernels);
    fmt::format_to(
        std::back_inserter(text),
        R"(  {{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{}", "pid": 4711,
   "tid": 4711, "ts": {:.3f}, "dur": {:.3f}, "args": {{}}}}{}
)",
        step, 1.7e15 + length * static_cast<double>(step), length, step < 4 ? "," : "");
  }
  stream << text << "]}\n";
}

// Such a file in the folder for temporary files, which goes with the object.
class WrittenTrace {
 public:
  explicit WrittenTrace(std::int64_t kernels) { write_kineto_file(path_, kernels); }
  ~WrittenTrace() { std::filesystem::remove(path_); }
  WrittenTrace(const WrittenTrace&) = delete;
  WrittenTrace& operator=(const WrittenTrace&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / fmt::format("shardwright-trace-{}.json", getpid());
};

}  // namespace shardwright::calibration
