// The gradient noise scale: the batch size at which noise and signal of a gradient are equal,
// beyond which larger batches bring ever less.
//
// It follows from the squared norms of gradients over a small batch b and a large one B ("An
// Empirical Model of Large-Batch Training", arXiv 1812.06162, appendix A.1):
//
//   |G|^2 = (B |G_B|^2 - b |G_b|^2) / (B - b)
//   S     = (|G_b|^2 - |G_B|^2) / (1 / b - 1 / B)
//   noise scale = S / |G|^2
//
// Both are noisy, so each is averaged over steps before the division. The large batch is that of
// the step; the small ones are the data-parallel ranks' parts, whose gradients exist before their
// reduction. If tensor-parallel ranks have addends of a gradient (norms under sequence
// parallelism), the square is that of their sum.
#pragma once

#include <optional>

namespace shardwright::executor {

// Running means over the steps so far. They depend on the gradient alone and stay valid when the
// batch size changes.
struct NoiseMeans {
  // |G|^2
  double signal = 0.0;
  // S, in tokens.
  double noise = 0.0;
  // The weight of the steps in the means, in [0, 1]; 0 before the first step.
  double weight = 0.0;

  bool operator==(const NoiseMeans&) const = default;
};

class NoiseScale {
 public:
  // Batch sizes in tokens, the small one smaller. `means` are those of earlier steps.
  NoiseScale(double small_batch, double large_batch, const NoiseMeans& means = {})
      : small_batch_(small_batch), large_batch_(large_batch), means_(means) {}

  void add(double small_squares, double large_squares) {
    // The weight of a new step in the running means.
    constexpr double kNew = 0.05;
    const double signal = (large_batch_ * large_squares - small_batch_ * small_squares) /
                          (large_batch_ - small_batch_);
    const double noise =
        (small_squares - large_squares) / (1.0 / small_batch_ - 1.0 / large_batch_);
    means_.signal += kNew * (signal - means_.signal);
    means_.noise += kNew * (noise - means_.noise);
    means_.weight += kNew * (1.0 - means_.weight);
  }

  // Returns the noise scale in tokens; nothing before the first step or if noise hides the
  // gradient.
  std::optional<double> value() const {
    if (means_.weight == 0.0 || means_.signal <= 0.0 || means_.noise <= 0.0) return std::nullopt;
    return means_.noise / means_.signal;
  }
  // True if the means rest on enough steps, and noise and signal are equal at twice the batch of
  // the steps or beyond: twice the batch then needs few tokens more.
  bool asks_for_twice() const {
    // Of 14 steps and more.
    constexpr double kEnough = 0.5;
    const auto scale = value();
    return means_.weight >= kEnough && scale && *scale >= 2.0 * large_batch_;
  }
  const NoiseMeans& means() const { return means_; }

 private:
  double small_batch_, large_batch_;
  NoiseMeans means_;
};

}  // namespace shardwright::executor
