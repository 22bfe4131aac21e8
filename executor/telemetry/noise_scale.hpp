// The gradient noise scale: the batch at which noise and signal of a gradient are alike, beyond
// which larger batches bring ever less.
//
// From the squared norms of gradients over a small batch b and a large one B ("An Empirical Model
// of Large-Batch Training", arXiv 1812.06162, appendix A.1):
//
//   |G|^2 = (B |G_B|^2 - b |G_b|^2) / (B - b)
//   S     = (|G_b|^2 - |G_B|^2) / (1 / b - 1 / B)
//   noise scale = S / |G|^2
//
// Both are noisy, so each is averaged over steps before they are divided. The large batch is the
// step's; the small ones are the parts of the data-parallel ranks, whose gradients are there before
// they are added up. Where tensor-parallel ranks know addends of one (norms under sequence
// parallelism), its square is taken of their sum.
#pragma once

#include <optional>

namespace shardwright::executor {

// Running means over the steps so far, of the gradient alone: they go on with other batches, too.
struct NoiseMeans {
  double signal = 0.0;  // |G|^2
  double noise = 0.0;   // S, in tokens
  double weight = 0.0;  // of what the means hold, in [0, 1]; 0: of no step yet

  bool operator==(const NoiseMeans&) const = default;
};

class NoiseScale {
 public:
  // Batches in tokens, the small one smaller. `means`: of the steps before.
  NoiseScale(double small_batch, double large_batch, const NoiseMeans& means = {})
      : small_batch_(small_batch), large_batch_(large_batch), means_(means) {}

  void add(double small_squares, double large_squares);

  // In tokens. None without steps, or where noise hides the gradient.
  std::optional<double> value() const;
  const NoiseMeans& means() const { return means_; }

 private:
  double small_batch_, large_batch_;
  NoiseMeans means_;
};

}  // namespace shardwright::executor
