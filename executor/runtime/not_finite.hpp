// Where a number of a step stopped being finite.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardwright::executor {

// How many values of an op are infinite or no numbers; in the device's memory while a step runs.
struct NotFiniteCounts {
  double results = 0.0;  // tensors and gradients that the op wrote, and what it added to sums
  double weights = 0.0;  // that it applied
};

// The first op of a rank, in the order of issue, whose results are not finite. All that it read of
// its own rank was finite, but for the weights that are counted.
struct NotFiniteOp {
  std::string op;
  NotFiniteCounts counts;
  std::vector<std::string> weights;  // that it applied
  bool received = false;             // an exchange: what other ranks sent takes part in it
};

// "ffn.down of layer 1, microbatch 0: 12 values of its result and 3 of its weights
// layers.1.mlp.down_proj are not finite"
std::string describe_not_finite(const NotFiniteOp& found);

}  // namespace shardwright::executor
