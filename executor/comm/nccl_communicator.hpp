// Communicators between GPUs over NCCL.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "executor/comm/communicator.hpp"
#include "executor/comm/tcp_store.hpp"

namespace shardwright::executor {

// Lets ranks share a GPU: each rank gets its own host name, so NCCL connects them through sockets
// of the loopback device. Call it before the first communicator is created. Transfer times are then
// those of sockets, not of a cluster.
void share_gpu_among_ranks(std::int64_t rank);

// Connects the group's members; returns when all have called it. `key` names the group in the store
// that they share and that must outlive the communicator. Queues are streams; the calling thread's
// GPU is used. Throws CommunicationError.
//
// Each channel between two members has its own NCCL communicator, so that transfers do not wait for
// those of other channels. It is created at the first transfer and may wait for the device, so send
// the first transfers while nothing else runs. Only one thread at a time may use the communicator.
std::unique_ptr<Communicator> connect_nccl(Store& store, const std::string& key, int rank, int size,
                                           std::chrono::milliseconds timeout);

}  // namespace shardwright::executor
