// Gradient norm and AdamW.
#include <cmath>

#include "executor/kernels/cuda/device_code.cuh"
#include "executor/kernels/cuda/fused_kernels.hpp"

namespace shardwright::executor {
namespace {

constexpr std::int64_t kMaxSquareBlocks = 1024;
// fp32 numbers of a 16-byte access.
constexpr int kFloats = 4;

template <int kVec>
__global__ void __launch_bounds__(kElementThreads)
    squares_kernel(std::int64_t elements, const float* gradient, double* parts) {
  double sum = 0.0;
#pragma unroll 4
  for (std::int64_t item = grid_index() * kVec; item < elements; item += grid_threads() * kVec) {
    float values[kVec];
    load<kVec>(gradient + item, values);
#pragma unroll
    for (int i = 0; i < kVec; ++i)
      sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kElementThreads)
    add_squares_kernel(std::int64_t parts, const double* from, double* sum) {
  double all = 0.0;
  for (std::int64_t i = threadIdx.x; i < parts; i += blockDim.x) all += from[i];
  all = block_sum(all);
  if (threadIdx.x == 0) *sum += all;
}

// The difference of two infinities or NaNs is NaN.
template <class Real>
__device__ inline bool is_finite(Real value) {
  return value - value == Real(0);
}
__device__ inline bool is_finite(Bf16 value) {
  return is_finite(__bfloat162float(value));
}

// One block suffices: the kernel runs only after a step has failed.
template <class Real>
__global__ void __launch_bounds__(kElementThreads)
    not_finite_kernel(std::int64_t elements, const Real* data, double* count) {
  double found = 0.0;
  for (std::int64_t i = threadIdx.x; i < elements; i += blockDim.x)
    found += is_finite(data[i]) ? 0.0 : 1.0;
  found = block_sum(found);
  if (threadIdx.x == 0) *count += found;
}

struct AdamArguments {
  // `kept` is the factor that weight decay leaves of a weight.
  float kept, rate, beta1, beta2, epsilon, clip_norm;
  float first_correction, second_correction;
};

template <int kVec>
__global__ void __launch_bounds__(kElementThreads)
    adamw_kernel(std::int64_t elements, AdamArguments step, const double* gradient_squares,
                 const float* gradient, float* weight, float* first_moment, float* second_moment,
                 Bf16* applied) {
  if (!is_finite(*gradient_squares)) return;
  const auto norm = static_cast<float>(sqrt(*gradient_squares));
  const float scale = step.clip_norm > 0.0F && norm > step.clip_norm ? step.clip_norm / norm : 1.0F;
  for (std::int64_t item = grid_index() * kVec; item < elements; item += grid_threads() * kVec) {
    float scaled[kVec], weights[kVec], first[kVec], second[kVec];
    load<kVec>(gradient + item, scaled);
    load<kVec>(weight + item, weights);
    load<kVec>(first_moment + item, first);
    load<kVec>(second_moment + item, second);
#pragma unroll
    for (int i = 0; i < kVec; ++i) {
      scaled[i] *= scale;
      first[i] = first[i] * step.beta1 + scaled[i] * (1.0F - step.beta1);
      second[i] = second[i] * step.beta2 + scaled[i] * scaled[i] * (1.0F - step.beta2);
      const float change = step.rate * (first[i] / step.first_correction) /
                           (sqrtf(second[i] / step.second_correction) + step.epsilon);
      weights[i] = weights[i] * step.kept - change;
    }
    store<kVec>(first_moment + item, first);
    store<kVec>(second_moment + item, second);
    store<kVec>(weight + item, weights);
    if (applied != nullptr) store<kVec>(applied + item, weights);
  }
}

}  // namespace

void FusedKernels::add_squares(std::int64_t elements, const void* gradient, double* sum,
                               Queue queue) {
  auto* parts = reinterpret_cast<double*>(scratch(queue).data());
  const std::int64_t blocks =
      std::clamp<std::int64_t>(divide_up(elements, 4 * kElementThreads), 1, kMaxSquareBlocks);
  const bool wide = is_wide(elements, gradient);
  launch(wide ? squares_kernel<kFloats> : squares_kernel<1>, dim3(static_cast<unsigned>(blocks)),
         kElementThreads, queue, elements, static_cast<const float*>(gradient), parts);
  launch(add_squares_kernel, dim3(1), kElementThreads, queue, blocks, parts, sum);
}

void FusedKernels::count_not_finite(std::int64_t elements, Element format, const void* data,
                                    double* count, Queue queue) {
  const auto start = [&](const auto& kernel, const auto* values) {
    launch(kernel, dim3(1), kElementThreads, queue, elements, values, count);
  };
  switch (format) {
    case Element::Bfloat16:
      return start(not_finite_kernel<Bf16>, static_cast<const Bf16*>(data));
    case Element::Float32:
      return start(not_finite_kernel<float>, static_cast<const float*>(data));
    case Element::Float64:
      return start(not_finite_kernel<double>, static_cast<const double*>(data));
  }
}

void FusedKernels::adamw(std::int64_t elements, const AdamStep& step, const AdamArrays& arrays,
                         const double* gradient_squares, Queue queue) {
  const auto count = static_cast<double>(step.step);
  AdamArguments with{};
  with.kept = 1.0F - step.learning_rate * step.weight_decay;
  with.rate = step.learning_rate;
  with.beta1 = step.beta1;
  with.beta2 = step.beta2;
  with.epsilon = step.epsilon;
  with.clip_norm = step.clip_norm;
  with.first_correction =
      static_cast<float>(1.0 - std::pow(static_cast<double>(step.beta1), count));
  with.second_correction =
      static_cast<float>(1.0 - std::pow(static_cast<double>(step.beta2), count));
  const bool wide = is_wide(elements, arrays.gradient, arrays.weight, arrays.first_moment,
                            arrays.second_moment, arrays.applied);
  launch(wide ? adamw_kernel<kFloats> : adamw_kernel<1>, grid_over(elements / (wide ? kFloats : 1)),
         kElementThreads, queue, elements, with, gradient_squares,
         static_cast<const float*>(arrays.gradient), static_cast<float*>(arrays.weight),
         static_cast<float*>(arrays.first_moment), static_cast<float*>(arrays.second_moment),
         static_cast<Bf16*>(arrays.applied));
}

}  // namespace shardwright::executor
