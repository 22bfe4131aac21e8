// Rotary positions, activations and sums.
#include <cmath>
#include <vector>

#include "executor/kernels/cuda/device_code.cuh"
#include "executor/kernels/cuda/fused_kernels.hpp"

namespace shardwright::executor {
namespace {

struct RopeArguments {
  std::int64_t rows, row_width, heads, head_dim, half, seq_len;
  float sign;
};

// Each thread rotates kVec pairs of a head.
template <int kVec>
__global__ void __launch_bounds__(kElementThreads)
    rope_kernel(RopeArguments shape, const float2* table, Bf16* data) {
  const std::int64_t packs = shape.half / kVec, items = shape.rows * shape.heads * packs;
  for (std::int64_t item = grid_index(); item < items; item += grid_threads()) {
    const std::int64_t heads_before = quotient(item, packs);
    const std::int64_t row = quotient(heads_before, shape.heads);
    const std::int64_t pair = (item - heads_before * packs) * kVec;
    const std::int64_t head = heads_before - row * shape.heads;
    Bf16* first_place = data + row * shape.row_width + head * shape.head_dim + pair;
    float first[kVec], second[kVec];
    load<kVec>(first_place, first);
    load<kVec>(first_place + shape.half, second);
    const std::int64_t position = row - quotient(row, shape.seq_len) * shape.seq_len;
    const float2* rotations = table + position * shape.half + pair;
#pragma unroll
    for (int i = 0; i < kVec; ++i) {
      const float cosine = rotations[i].x, sine = rotations[i].y * shape.sign;
      const float a = first[i], b = second[i];
      first[i] = a * cosine - b * sine;
      second[i] = b * cosine + a * sine;
    }
    store<kVec>(first_place, first);
    store<kVec>(first_place + shape.half, second);
  }
}

struct Activated {
  float value, slope;
};

// Its error, about 1e-6, is far below the rounding of bf16.
__device__ inline float fast_tanh(float x) {
  return 1.0F - 2.0F / (1.0F + __expf(2.0F * x));
}

// See `activate` of the CPU kernels.
__device__ inline Activated activate(Activation kind, float x) {
  if (kind == Activation::Relu) return {fmaxf(x, 0.0F), x > 0.0F ? 1.0F : 0.0F};
  if (kind == Activation::Silu) {
    const float sigmoid = 1.0F / (1.0F + __expf(-x));
    return {x * sigmoid, sigmoid * (1.0F + x * (1.0F - sigmoid))};
  }
  // sqrt(2 / pi)
  constexpr float kScale = 0.7978845608028654F;
  constexpr float kCubic = 0.044715F;
  const float t = fast_tanh(kScale * (x + kCubic * x * x * x));
  const float inner = kScale * (1.0F + 3.0F * kCubic * x * x);
  return {0.5F * x * (1.0F + t), 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * inner};
}

template <int kVec>
__global__ void __launch_bounds__(kElementThreads)
    activation_kernel(ActivationShape shape, const Bf16* up, Bf16* out) {
  const std::int64_t packs = shape.width / kVec, items = shape.rows * packs;
  for (std::int64_t item = grid_index(); item < items; item += grid_threads()) {
    const std::int64_t row = quotient(item, packs), column = (item - row * packs) * kVec;
    const Bf16* in = up + row * shape.width * (shape.gated ? 2 : 1) + column;
    float values[kVec], rest[kVec];
    load<kVec>(in, values);
    if (shape.gated) load<kVec>(in + shape.width, rest);
#pragma unroll
    for (int i = 0; i < kVec; ++i) {
      values[i] = activate(shape.kind, values[i]).value;
      if (shape.gated) values[i] *= rest[i];
    }
    store<kVec>(out + row * shape.width + column, values);
  }
}

template <int kVec>
__global__ void __launch_bounds__(kElementThreads)
    activation_backward_kernel(ActivationShape shape, const Bf16* up, const Bf16* dout, Bf16* dup) {
  const std::int64_t packs = shape.width / kVec, items = shape.rows * packs;
  for (std::int64_t item = grid_index(); item < items; item += grid_threads()) {
    const std::int64_t row = quotient(item, packs), column = (item - row * packs) * kVec;
    const std::int64_t place = row * shape.width * (shape.gated ? 2 : 1) + column;
    float gate[kVec], rest[kVec], gradient[kVec];
    load<kVec>(up + place, gate);
    if (shape.gated) load<kVec>(up + place + shape.width, rest);
    load<kVec>(dout + row * shape.width + column, gradient);
#pragma unroll
    for (int i = 0; i < kVec; ++i) {
      const Activated activated = activate(shape.kind, gate[i]);
      gate[i] = gradient[i] * activated.slope * (shape.gated ? rest[i] : 1.0F);
      rest[i] = gradient[i] * activated.value;
    }
    store<kVec>(dup + place, gate);
    if (shape.gated) store<kVec>(dup + place + shape.width, rest);
  }
}

template <int kVec>
__global__ void __launch_bounds__(kElementThreads)
    add_kernel(std::int64_t elements, const Bf16* a, const Bf16* b, Bf16* sum) {
  for (std::int64_t item = grid_index() * kVec; item < elements; item += grid_threads() * kVec) {
    float left[kVec], right[kVec];
    load<kVec>(a + item, left);
    load<kVec>(b + item, right);
#pragma unroll
    for (int i = 0; i < kVec; ++i) left[i] += right[i];
    store<kVec>(sum + item, left);
  }
}

__global__ void __launch_bounds__(kElementThreads)
    accumulate_kernel(std::int64_t elements, const float* from, float* into) {
  for (std::int64_t item = grid_index(); item < elements; item += grid_threads())
    into[item] += from[item];
}

}  // namespace

const void* FusedKernels::rope_table(const RopeShape& shape) {
  std::shared_ptr<void>& table =
      rope_tables_[{shape.seq_len, shape.rotated, shape.theta, shape.scaling}];
  if (table) return table.get();
  const std::int64_t half = shape.rotated / 2;
  std::vector<float2> rotations;
  for (std::int64_t position = 0; position < shape.seq_len; ++position) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(position) * shape.frequency(i);
      rotations.push_back(
          {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))});
    }
  }
  const std::size_t bytes = rotations.size() * sizeof(float2);
  table = allocate(bytes);
  upload(table.get(), rotations.data(), bytes);
  return table.get();
}

void FusedKernels::rope(const RopeShape& shape, bool inverse, void* data, Queue queue) {
  const std::int64_t half = shape.rotated / 2;
  const RopeArguments with{shape.rows, shape.row_width, shape.heads,           shape.head_dim,
                           half,       shape.seq_len,   inverse ? -1.0F : 1.0F};
  const bool wide =
      is_wide(half, data) && shape.row_width % kWide == 0 && shape.head_dim % kWide == 0;
  const std::int64_t items = shape.rows * shape.heads * half / (wide ? kWide : 1);
  launch(wide ? rope_kernel<kWide> : rope_kernel<1>, grid_over(items), kElementThreads, queue, with,
         static_cast<const float2*>(rope_table(shape)), as_bf16(data));
}

void FusedKernels::activation(const ActivationShape& shape, const void* up, void* out,
                              Queue queue) {
  const bool wide = is_wide(shape.width, up, out);
  launch(wide ? activation_kernel<kWide> : activation_kernel<1>,
         grid_over(shape.rows * shape.width / (wide ? kWide : 1)), kElementThreads, queue, shape,
         as_bf16(up), as_bf16(out));
}

void FusedKernels::activation_backward(const ActivationShape& shape, const void* up,
                                       const void* dout, void* dup, Queue queue) {
  const bool wide = is_wide(shape.width, up, dout, dup);
  launch(wide ? activation_backward_kernel<kWide> : activation_backward_kernel<1>,
         grid_over(shape.rows * shape.width / (wide ? kWide : 1)), kElementThreads, queue, shape,
         as_bf16(up), as_bf16(dout), as_bf16(dup));
}

void FusedKernels::add(std::int64_t elements, const void* a, const void* b, void* sum,
                       Queue queue) {
  const bool wide = is_wide(elements, a, b, sum);
  launch(wide ? add_kernel<kWide> : add_kernel<1>, grid_over(elements / (wide ? kWide : 1)),
         kElementThreads, queue, elements, as_bf16(a), as_bf16(b), as_bf16(sum));
}

void FusedKernels::accumulate(std::int64_t elements, const void* from, void* into, Queue queue) {
  launch(accumulate_kernel, grid_over(elements), kElementThreads, queue, elements,
         static_cast<const float*>(from), static_cast<float*>(into));
}

}  // namespace shardwright::executor
