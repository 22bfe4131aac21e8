// One table of ops that every backend runs: its results are compared with those of the CPU kernels
// in fp32 on the same inputs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/kernels/kernels.hpp"

namespace shardwright::executor {

// Buffers of a backend that tests fill and read as floats. Kernels run without a queue of their
// own, so that one comes after another and reading waits for them.
class OpBench {
 public:
  explicit OpBench(Kernels& on) : kernels(on) {}

  // In the format of activations, or of states. Values are such that bf16 holds them.
  void* activations(const std::vector<float>& values);
  void* states(const std::vector<float>& values);
  std::span<const std::int32_t> tokens(const std::vector<std::int32_t>& values);
  double* number(double value);

  std::vector<float> read_activations(const void* data, std::size_t count);
  std::vector<float> read_states(const void* data, std::size_t count);
  float read_number(const double* data);

  Kernels& kernels;
  static constexpr Queue queue = nullptr;

 private:
  void* keep(const void* data, std::size_t bytes);

  std::vector<std::shared_ptr<void>> held_;
};

// What an op wrote, and how far it may lie from the reference, of the largest value there is.
struct OpResult {
  std::string name;
  std::vector<float> values;
  double tolerance = 0.0;
};

struct OpCase {
  std::string name;
  bool by_library = false;  // a matrix product or attention
  std::function<std::vector<OpResult>(OpBench&)> run;
};

void PrintTo(const OpCase& op, std::ostream* out);

const std::vector<OpCase>& op_table();

// Runs the op on both and compares.
void expect_same_results(const OpCase& op, OpBench& bench);

}  // namespace shardwright::executor
