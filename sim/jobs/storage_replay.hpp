// The bursts of storage traffic, one after the other, on links that other jobs use too.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/jobs/job_network.hpp"
#include "sim/jobs/job_set.hpp"
#include "sim/step/shared_transfers.hpp"

namespace shardwright::sim {

class StorageReplay {
 public:
  // What is passed outlives this.
  StorageReplay(const StorageTraffic& traffic, const JobNetwork& network,
                SharedTransfers& transfers, std::uint32_t job);

  // Begins the first burst, or the next one after one that is over.
  void begin(double start);
  bool go_on() const { return true; }
  // Takes note of the end of a transfer whose owner is this traffic.
  void finish_transfer(const SharedTransfers::Finished& finished);
  bool is_over() const { return under_way_ == 0; }
  // The end of the last transfer of the burst.
  double end() const { return end_; }

  void add_moved(std::vector<double>& bytes_by_link) const;

 private:
  struct Flow {
    SharedTransfers::RouteId route = 0;
    // The time of a burst at the rate that the flow takes alone.
    double duration = 0.0;
  };

  SharedTransfers& transfers_;
  std::uint32_t job_ = 0;
  std::vector<Flow> flows_;
  std::size_t under_way_ = 0;
  double end_ = 0.0;
};

}  // namespace shardwright::sim
