// LayerNorm (arXiv 1607.06450) and RMSNorm (arXiv 1910.07467).
//
//   n = (x - mean) r, r = 1 / sqrt(var + eps)  (RMSNorm: without the mean);  y = n w + b
//   dn = dy w;  dx = (dn - mean(dn) - n mean(dn n)) r  (RMSNorm: without mean(dn))
//
// A block keeps one row at a time in registers, up to kPacks packs per thread. check_executable
// refuses models with longer rows (longest_norm_row).
#include "executor/kernels/cuda/column_sums.cuh"
#include "executor/kernels/cuda/fused_kernels.hpp"

namespace shardwright::executor {
namespace {

static_assert(kWide == 8, "the packs of longest_norm_row");
// The threads among which rows are divided if each block keeps sums of its rows: half of what an
// H100 can hold, since a thread keeps much of its row in registers.
constexpr std::int64_t kThreadsWithSums = 132 * 1024;

// A row, distributed over the threads of a block.
template <int kVec, int kPacks>
struct Row {
  float values[kPacks][kVec];

  __device__ static std::int64_t column(int pack) {
    return (static_cast<std::int64_t>(pack) * blockDim.x + threadIdx.x) * kVec;
  }

  // Elements beyond the row are 0.
  __device__ void read(const Bf16* row, std::int64_t width) {
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
      if (column(pack) < width) {
        load<kVec>(row + column(pack), values[pack]);
      } else {
#pragma unroll
        for (int i = 0; i < kVec; ++i) values[pack][i] = 0.0F;
      }
    }
  }
};

// Normalises x in place; returns r.
template <int kVec, int kPacks>
__device__ float normalise(bool centred, float epsilon, std::int64_t width, Row<kVec, kPacks>& x) {
  using Place = Row<kVec, kPacks>;
  const float share = 1.0F / static_cast<float>(width);
  float mean = 0.0F;
  if (centred) {
    float sum = 0.0F;
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
#pragma unroll
      for (int i = 0; i < kVec; ++i) sum += x.values[pack][i];
    }
    mean = block_sum(sum) * share;
  }
  float squares = 0.0F;
#pragma unroll
  for (int pack = 0; pack < kPacks; ++pack) {
    if (Place::column(pack) >= width) continue;
#pragma unroll
    for (int i = 0; i < kVec; ++i) {
      x.values[pack][i] -= mean;
      squares += x.values[pack][i] * x.values[pack][i];
    }
  }
  const float inverse = rsqrtf(block_sum(squares) * share + epsilon);
#pragma unroll
  for (int pack = 0; pack < kPacks; ++pack) {
#pragma unroll
    for (int i = 0; i < kVec; ++i) x.values[pack][i] *= inverse;
  }
  return inverse;
}

template <int kVec, int kPacks>
__global__ void norm_kernel(bool centred, float epsilon, std::int64_t width, const Bf16* x,
                            const Bf16* weight, const Bf16* bias, Bf16* y) {
  using Place = Row<kVec, kPacks>;
  const std::int64_t start = static_cast<std::int64_t>(blockIdx.x) * width;
  Place row;
  row.read(x + start, width);
  normalise(centred, epsilon, width, row);
#pragma unroll
  for (int pack = 0; pack < kPacks; ++pack) {
    const std::int64_t column = Place::column(pack);
    if (column >= width) continue;
    float scale[kVec], shift[kVec] = {};
    load<kVec>(weight + column, scale);
    if (bias != nullptr) load<kVec>(bias + column, shift);
#pragma unroll
    for (int i = 0; i < kVec; ++i) shift[i] += row.values[pack][i] * scale[i];
    store<kVec>(y + start + column, shift);
  }
}

struct NormGradientArguments {
  bool centred;
  float epsilon;
  std::int64_t rows, width;
  const Bf16 *dy, *residual, *x, *weight;
  Bf16* dx;
  // [gridDim.x, width]; bias_parts may be null.
  float *weight_parts, *bias_parts;
};

template <int kVec, int kPacks>
__global__ void norm_backward_kernel(NormGradientArguments with) {
  using Place = Row<kVec, kPacks>;
  const float share = 1.0F / static_cast<float>(with.width);
  float weight_sums[kPacks][kVec] = {}, bias_sums[kPacks][kVec] = {};
  for (std::int64_t r = blockIdx.x; r < with.rows; r += gridDim.x) {
    const std::int64_t start = r * with.width;
    Place normalised, gradient;
    normalised.read(with.x + start, with.width);
    gradient.read(with.dy + start, with.width);
    const float inverse = normalise(with.centred, with.epsilon, with.width, normalised);
    float along = 0.0F, sum = 0.0F;
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
      if (Place::column(pack) >= with.width) continue;
      float scale[kVec];
      load<kVec>(with.weight + Place::column(pack), scale);
#pragma unroll
      for (int i = 0; i < kVec; ++i) {
        const float dy = gradient.values[pack][i], n = normalised.values[pack][i];
        weight_sums[pack][i] += dy * n;
        bias_sums[pack][i] += dy;
        gradient.values[pack][i] = dy * scale[i];
        along += gradient.values[pack][i] * n;
        sum += gradient.values[pack][i];
      }
    }
    along = block_sum(along) * share;
    const float mean = with.centred ? block_sum(sum) * share : 0.0F;
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
      const std::int64_t column = Place::column(pack);
      if (column >= with.width) continue;
      float dx[kVec] = {};
      if (with.residual != nullptr) load<kVec>(with.residual + start + column, dx);
#pragma unroll
      for (int i = 0; i < kVec; ++i) {
        dx[i] += (gradient.values[pack][i] - mean - normalised.values[pack][i] * along) * inverse;
      }
      store<kVec>(with.dx + start + column, dx);
    }
  }
#pragma unroll
  for (int pack = 0; pack < kPacks; ++pack) {
    const std::int64_t column = Place::column(pack);
    if (column >= with.width) continue;
    const std::int64_t place = static_cast<std::int64_t>(blockIdx.x) * with.width + column;
#pragma unroll
    for (int i = 0; i < kVec; ++i) {
      with.weight_parts[place + i] = weight_sums[pack][i];
      if (with.bias_parts != nullptr) with.bias_parts[place + i] = bias_sums[pack][i];
    }
  }
}

// Calls with<kVec, kPacks>(threads) for rows of `width` elements, with the fewest packs per thread.
template <class With>
void choose_row(bool wide, std::int64_t width, const With& with) {
  const std::int64_t packs = wide ? width / kWide : width;
  const std::int64_t each = divide_up(packs, kMaxNormThreads);
  if (each > kMaxNormPacks)
    throw CudaError("norm", "rows of " + std::to_string(width) + " are too long");
  const auto choose = [&](auto vec) {
    constexpr int kVec = decltype(vec)::value;
    const auto call = [&](auto count) {
      constexpr int kPacks = decltype(count)::value;
      with.template operator()<kVec, kPacks>(
          static_cast<unsigned>(divide_up(packs, kPacks * std::int64_t{kWarp}) * kWarp));
    };
    if (each == 1) return call(std::integral_constant<int, 1>());
    if (each == 2) return call(std::integral_constant<int, 2>());
    if (each <= 4) return call(std::integral_constant<int, 4>());
    call(std::integral_constant<int, kMaxNormPacks>());
  };
  if (wide) return choose(std::integral_constant<int, kWide>());
  choose(std::integral_constant<int, 1>());
}

}  // namespace

void FusedKernels::norm(const NormShape& shape, const void* x, const void* weight, const void* bias,
                        void* y, Queue queue) {
  const bool wide = is_wide(shape.width, x, weight, bias, y);
  choose_row(wide, shape.width, [&]<int kVec, int kPacks>(unsigned threads) {
    launch(norm_kernel<kVec, kPacks>, dim3(static_cast<unsigned>(shape.rows)), threads, queue,
           shape.kind == NormKind::LayerNorm, static_cast<float>(shape.epsilon), shape.width,
           as_bf16(x), as_bf16(weight), as_bf16(bias), as_bf16(y));
  });
}

void FusedKernels::norm_backward(const NormShape& shape, const void* dy, const void* residual,
                                 const void* x, const void* weight, void* dx, void* dweight,
                                 void* dbias, Queue queue) {
  NormGradientArguments with{shape.kind == NormKind::LayerNorm,
                             static_cast<float>(shape.epsilon),
                             shape.rows,
                             shape.width,
                             as_bf16(dy),
                             as_bf16(residual),
                             as_bf16(x),
                             as_bf16(weight),
                             as_bf16(dx),
                             nullptr,
                             nullptr};
  const std::span<float> memory = scratch(queue);
  with.weight_parts = memory.data();
  const bool wide = is_wide(shape.width, dy, residual, x, weight, dx);
  choose_row(wide, shape.width, [&]<int kVec, int kPacks>(unsigned threads) {
    const std::int64_t wanted = std::min(shape.rows, divide_up(kThreadsWithSums, threads));
    const std::int64_t parts = parts_that_fit(wanted, 2 * shape.width, memory);
    if (dbias != nullptr) with.bias_parts = with.weight_parts + parts * shape.width;
    launch(norm_backward_kernel<kVec, kPacks>, dim3(static_cast<unsigned>(parts)), threads, queue,
           with);
    add_parts(parts, shape.width, with.weight_parts, dweight, queue);
    if (dbias != nullptr) add_parts(parts, shape.width, with.bias_parts, dbias, queue);
  });
}

}  // namespace shardwright::executor
