// Ops that every backend runs; their results are compared with those of the CPU kernels in fp32 on
// the same inputs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/kernels/kernels.hpp"

namespace shardwright::executor {

// Buffers of a backend, which tests fill and read as floats. Kernels run without a queue, so they
// run one after another and reading waits for them.
class OpBench {
 public:
  explicit OpBench(Kernels& on) : kernels(on) {}

  // Return buffers in the format of activations or of states. bf16 represents all values.
  void* activations(const std::vector<float>& values);
  void* states(const std::vector<float>& values);
  std::span<const std::int32_t> tokens(const std::vector<std::int32_t>& values);
  double* number(double value);

  std::vector<float> read_activations(const void* data, std::int64_t count);
  std::vector<float> read_states(const void* data, std::int64_t count);
  float read_number(const double* data);

  Kernels& kernels;
  static constexpr Queue queue = nullptr;

 private:
  void* keep(const void* data, std::size_t bytes);

  std::vector<std::shared_ptr<void>> held_;
};

// bf16 keeps 8 bits: a result that is rounded once is off by 2^-9 of itself at most. Where sums of
// rounded values are rounded again, a few times that.
inline constexpr double kRoundedOnce = 1.0 / 256.0, kRoundedOften = 1.0 / 64.0;
// fp32 sums in another order.
inline constexpr double kExact = 2e-5;

// Random values from -scale to scale that bf16 represents.
std::vector<float> values_of(std::int64_t count, std::uint64_t key, double scale = 1.0);
std::vector<float> zeros(std::int64_t count);

// The results of an op, and their tolerance relative to the largest value.
struct OpResult {
  std::string name;
  std::vector<float> values;
  double tolerance = 0.0;
};

struct OpCase {
  std::string name;
  // A matrix product or attention.
  bool by_library = false;
  std::function<std::vector<OpResult>(OpBench&)> run;
};

void PrintTo(const OpCase& op, std::ostream* out);

const std::vector<OpCase>& op_table();

// Runs the op on both backends and compares the results.
void expect_same_results(const OpCase& op, OpBench& bench);

}  // namespace shardwright::executor
