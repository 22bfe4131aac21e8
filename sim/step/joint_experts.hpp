// Closed forms of groups of experts that span replicas on several pools
// (docs/models/pools.md#experts).
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/lowering/block_set.hpp"
#include "core/spec/scenario.hpp"
#include "sim/step/prices.hpp"

namespace shardwright::sim {

// What the ranks of a group meet at: the exchanges of tokens, which start when the last rank has
// reached them and take as long as between nodes of the slowest pool.
class JointExperts {
 public:
  // The scenario must outlive this object.
  explicit JointExperts(const Scenario& scenario);
  ~JointExperts();

  // Gives the exchanges in a block of a part the prices that they have between the pools: the least
  // one of any part, which bounds all of them, or with `waits` the largest one and the time that
  // the part's ranks wait in it for those of other parts, whose kernels since the exchange before
  // take longer.
  void join(std::size_t part, BlockId block, bool waits, BlockPrices& prices) const;

 private:
  struct Part;
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace shardwright::sim
