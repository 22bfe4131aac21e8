#include "sim/jobs/storage_replay.hpp"

namespace shardwright::sim {

StorageReplay::StorageReplay(const StorageTraffic& traffic, const JobNetwork& network,
                             SharedTransfers& transfers, std::uint32_t job)
    : transfers_(transfers), job_(job) {
  const Bytes of_node = traffic.bytes / static_cast<double>(traffic.nodes.size());
  for (std::size_t node = 0; node < traffic.nodes.size(); ++node) {
    const TransferShape shape = network.flow_of(traffic, node);
    const BytesPerSecond rate = shape.rails.front().rate * static_cast<double>(shape.rails.size());
    flows_.push_back({transfers.add_route(shape), (of_node / rate).value()});
  }
}

void StorageReplay::begin(double start) {
  under_way_ = flows_.size();
  for (std::uint32_t i = 0; i < flows_.size(); ++i)
    transfers_.begin({0, i, job_}, flows_[i].route, start, flows_[i].duration);
}

void StorageReplay::finish_transfer(const SharedTransfers::Finished& finished) {
  --under_way_;
  end_ = finished.time;
}

void StorageReplay::add_moved(std::vector<double>& bytes_by_link) const {
  for (const Flow& flow : flows_) transfers_.add_moved(flow.route, bytes_by_link);
}

}  // namespace shardwright::sim
