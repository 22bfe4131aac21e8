#include "executor/comm/nccl_communicator.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <thread>
#include <tuple>
#include <utility>

#include "executor/kernels/cuda/cuda_device.hpp"

namespace shardwright::executor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kPollInterval{50};
// Calls that connect no members take less, and sleeping would delay them by the poll interval.
constexpr std::chrono::microseconds kSpin{200};

[[noreturn]] void fail(const std::string& what, const std::string& why) {
  throw CommunicationError(what + ": " + why);
}

// Owns one NCCL communicator in non-blocking mode: calls return at once, also those that connect
// members.
class NcclHandle {
 public:
  // Rank 0 creates the id through which the members find each other.
  NcclHandle(Store& store, std::string name, int rank, int size, std::chrono::milliseconds timeout)
      : name_(std::move(name)), timeout_(timeout) {
    const ncclUniqueId id = shared_id(store, rank);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    try {
      wait_for("ncclCommInitRank", ncclCommInitRankConfig(&handle_, size, id, rank, &config));
    } catch (...) {
      // The destructor does not run for a constructor that throws.
      abort();
      throw;
    }
  }

  ~NcclHandle() {
    if (handle_ == nullptr) return;
    if (failed_) {
      ncclCommAbort(handle_);
      return;
    }
    ncclResult_t state = ncclCommFinalize(handle_);
    const auto deadline = Clock::now() + timeout_;
    while (state == ncclInProgress && Clock::now() < deadline) {
      std::this_thread::sleep_for(kPollInterval);
      state = state_now();
    }
    if (state == ncclSuccess) {
      ncclCommDestroy(handle_);
    } else {
      ncclCommAbort(handle_);
    }
  }
  NcclHandle(const NcclHandle&) = delete;
  NcclHandle& operator=(const NcclHandle&) = delete;

  // Calls call(ncclComm_t), which enqueues an operation.
  template <class Call>
  void issue(const char* what, const Call& call) {
    if (handle_ == nullptr) fail(name_, "was aborted");
    wait_for(what, call(handle_));
  }

  void check() {
    if (handle_ == nullptr) return;
    const ncclResult_t state = state_now();
    if (state != ncclSuccess && state != ncclInProgress) give_reason("NCCL", state);
  }

  void abort() {
    if (handle_ != nullptr) ncclCommAbort(std::exchange(handle_, nullptr));
  }

 private:
  // Returns the state of the enqueued operations, or the error of asking for it.
  ncclResult_t state_now() const {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(handle_, &state);
    return asked == ncclSuccess ? state : asked;
  }

  ncclUniqueId shared_id(Store& store, int rank) const {
    ncclUniqueId id{};
    if (rank == 0) {
      const ncclResult_t made = ncclGetUniqueId(&id);
      if (made != ncclSuccess) fail("ncclGetUniqueId", ncclGetErrorString(made));
      store.set(name_, std::string(id.internal, sizeof id.internal));
      return id;
    }
    const std::string bytes = store.get(name_, timeout_);
    if (bytes.size() != sizeof id.internal) fail(name_, "no NCCL id in the store");
    std::copy(bytes.begin(), bytes.end(), id.internal);
    return id;
  }

  // Waits until NCCL has put the call's kernel into the stream.
  void wait_for(const char* what, ncclResult_t state) {
    const auto start = Clock::now();
    while (state == ncclInProgress) {
      const auto waited = Clock::now() - start;
      if (waited > timeout_) {
        failed_ = true;
        fail(fmt::format("{} of {}", what, name_), "the other members did not join in time");
      }
      if (waited > kSpin) std::this_thread::sleep_for(kPollInterval);
      state = state_now();
    }
    if (state != ncclSuccess) give_reason(what, state);
  }

  [[noreturn]] void give_reason(const char* what, ncclResult_t state) {
    failed_ = true;
    fail(fmt::format("{} of {}", what, name_),
         fmt::format("{} ({})", ncclGetErrorString(state), ncclGetLastError(handle_)));
  }

  std::string name_;
  std::chrono::milliseconds timeout_;
  ncclComm_t handle_ = nullptr;
  bool failed_ = false;
};

ncclDataType_t type_of(Element element) {
  switch (element) {
    case Element::Float64:
      return ncclFloat64;
    case Element::Bfloat16:
      return ncclBfloat16;
    case Element::Float32:
      break;
  }
  return ncclFloat32;
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(Store& store, std::string key, int rank, int size,
                   std::chrono::milliseconds timeout)
      : store_(store),
        key_("nccl/" + std::move(key)),
        rank_(rank),
        size_(size),
        timeout_(timeout),
        all_(store, key_, rank, size, timeout) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_reduce(void* data, std::size_t elements, Element element, Reduction reduction,
                  Queue queue) override {
    const ncclRedOp_t operation = reduction == Reduction::Sum ? ncclSum : ncclMax;
    all_.issue("ncclAllReduce", [&](ncclComm_t with) {
      return ncclAllReduce(data, data, elements, type_of(element), operation, with,
                           stream_of(queue));
    });
  }

  void all_gather(const void* in, void* out, std::size_t elements_each, Element element,
                  Queue queue) override {
    all_.issue("ncclAllGather", [&](ncclComm_t with) {
      return ncclAllGather(in, out, elements_each, type_of(element), with, stream_of(queue));
    });
  }

  void reduce_scatter(const void* in, void* out, std::size_t elements_each, Element element,
                      Queue queue) override {
    all_.issue("ncclReduceScatter", [&](ncclComm_t with) {
      return ncclReduceScatter(in, out, elements_each, type_of(element), ncclSum, with,
                               stream_of(queue));
    });
  }

  void broadcast(void* data, std::size_t bytes, int root, Queue queue) override {
    all_.issue("ncclBroadcast", [&](ncclComm_t with) {
      return ncclBroadcast(data, data, bytes, ncclUint8, root, with, stream_of(queue));
    });
  }

  void send(const void* data, std::size_t bytes, int peer, int channel, Queue queue) override {
    pair(rank_, peer, channel).issue("ncclSend", [&](ncclComm_t with) {
      return ncclSend(data, bytes, ncclUint8, kReceiver, with, stream_of(queue));
    });
  }

  void receive(void* data, std::size_t bytes, int peer, int channel, Queue queue) override {
    pair(peer, rank_, channel).issue("ncclRecv", [&](ncclComm_t with) {
      return ncclRecv(data, bytes, ncclUint8, kSender, with, stream_of(queue));
    });
  }

  void check() override {
    all_.check();
    for (auto& [name, handle] : pairs_) handle->check();
  }

  void abort() override {
    all_.abort();
    for (auto& [name, handle] : pairs_) handle->abort();
  }

 private:
  // Ranks within the communicator of a channel.
  static constexpr int kSender = 0, kReceiver = 1;

  // Both members create it at their first transfer, before the first step
  // (RankCommunicators::warm_up).
  NcclHandle& pair(int sender, int receiver, int channel) {
    std::unique_ptr<NcclHandle>& handle = pairs_[{sender, receiver, channel}];
    if (!handle) {
      const std::string name = fmt::format("{}/{}-{}.{}", key_, sender, receiver, channel);
      handle = std::make_unique<NcclHandle>(store_, name, rank_ == sender ? kSender : kReceiver, 2,
                                            timeout_);
    }
    return *handle;
  }

  Store& store_;
  std::string key_;
  int rank_, size_;
  std::chrono::milliseconds timeout_;
  NcclHandle all_;
  std::map<std::tuple<int, int, int>, std::unique_ptr<NcclHandle>> pairs_;
};

}  // namespace

void share_gpu_among_ranks(std::int64_t rank) {
  constexpr int kReplace = 1;
  setenv("NCCL_HOSTID", fmt::format("shardwright-{}", rank).c_str(), kReplace);
  setenv("NCCL_SOCKET_IFNAME", "lo", kReplace);
  setenv("NCCL_NET", "Socket", kReplace);
}

std::unique_ptr<Communicator> connect_nccl(Store& store, const std::string& key, int rank, int size,
                                           std::chrono::milliseconds timeout) {
  return std::make_unique<NcclCommunicator>(store, key, rank, size, timeout);
}

}  // namespace shardwright::executor
