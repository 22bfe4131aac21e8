// Communicators between GPUs, through NCCL.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "executor/comm/communicator.hpp"
#include "executor/comm/store.hpp"

namespace shardwright::executor {

// Lets ranks share a GPU: NCCL takes those with names of their own for ranks of different hosts and
// connects them through sockets of the loopback device. Call before the first communicator is made;
// times are those of sockets then, not of a cluster.
void share_gpu_among_ranks(std::int64_t rank);

// Connects the group's members with each other; returns when all have called it. `key` names the
// group in the store, which all of them share and which outlives the communicator. Queues are
// streams; the calling thread's GPU is used. Throws CommunicationError.
//
// Each channel between two members has a communicator of its own, made at the first message, so
// that messages do not wait for those of other channels. Making one may wait for the device: send
// the first messages while nothing else runs. A thread uses the communicator at a time.
std::unique_ptr<Communicator> connect_nccl(Store& store, const std::string& key, int rank, int size,
                                           std::chrono::milliseconds timeout);

}  // namespace shardwright::executor
