// The op at which values of a step stopped being finite.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardwright::executor {

// Numbers of infinite or NaN values of an op; in device memory while a step runs.
struct NotFiniteCounts {
  // Values in the tensors and gradients that the op wrote or added to.
  double results = 0.0;
  // Values in the weights that the op applied.
  double weights = 0.0;
};

// The first op of a rank, in the order of issue, with results that are not finite. Its inputs from
// this rank were finite, except for the weights that are counted.
struct NotFiniteOp {
  std::string op;
  NotFiniteCounts counts;
  std::vector<std::string> weights;
  // The op is a collective or transfer, so its inputs include other ranks' values.
  bool received = false;
};

// "ffn.down of layer 1, microbatch 0: 12 values of its result and 3 of its weights
// layers.1.mlp.down_proj are not finite"
std::string describe_not_finite(const NotFiniteOp& found);

}  // namespace shardwright::executor
