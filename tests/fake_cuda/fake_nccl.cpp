// NCCL's calls in non-blocking mode: a call may still be in progress when it returns, and then puts
// its kernel into the stream once the host has asked for its state a few times. Kernels of one
// communicator run in the order of issue; a kernel ends when all members have started it.
#include <nccl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "executor/kernels/bfloat16.hpp"
#include "tests/fake_cuda/fake_gpus.hpp"

using shardwright::fake::current_gpu;
using shardwright::fake::Gpu;
using shardwright::fake::gpus;
using shardwright::fake::Progress;

namespace {

enum class Kind : std::uint8_t { AllReduce, AllGather, ReduceScatter, Broadcast, Transfer };

// What all members have to agree on.
struct Arguments {
  Kind kind = Kind::AllReduce;
  std::size_t count = 0;
  ncclDataType_t type = ncclUint8;
  ncclRedOp_t operation = ncclSum;
  int root = 0;

  bool operator==(const Arguments&) const = default;
};

struct Buffers {
  const void* in = nullptr;
  void* out = nullptr;
};

struct Exchange {
  Arguments arguments;
  // What each member that has come reads from its input.
  std::map<int, std::vector<std::byte>> inputs;
  std::size_t left = 0;
};

struct Group {
  explicit Group(int ranks) : size(static_cast<std::size_t>(ranks)) {}

  std::mutex mutex;
  std::size_t size;
  std::size_t joined = 0, aborted = 0;
  std::map<std::uint64_t, Exchange> exchanges;
};

// A member as its kernels see it, which may outlive its handle.
struct Member {
  std::shared_ptr<Group> group;
  int rank = 0;
  bool aborted = false;
  // Exchanges that have ended on this member.
  std::uint64_t ended = 0;
};

std::size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclUint8:
      return 1;
    case ncclBfloat16:
      return 2;
    case ncclFloat32:
      return 4;
    case ncclFloat64:
      break;
  }
  return 8;
}

double load(const void* data, std::size_t index, ncclDataType_t type) {
  if (type == ncclFloat64) return static_cast<const double*>(data)[index];
  if (type == ncclFloat32) return static_cast<const float*>(data)[index];
  return shardwright::executor::from_bfloat16(static_cast<const std::uint16_t*>(data)[index]);
}

void store(void* data, std::size_t index, ncclDataType_t type, double value) {
  if (type == ncclFloat64) {
    static_cast<double*>(data)[index] = value;
  } else if (type == ncclFloat32) {
    static_cast<float*>(data)[index] = static_cast<float>(value);
  } else {
    static_cast<std::uint16_t*>(data)[index] =
        shardwright::executor::to_bfloat16(static_cast<float>(value));
  }
}

std::vector<std::byte> copy_of(const void* data, std::size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  return begin == nullptr ? std::vector<std::byte>() : std::vector<std::byte>(begin, begin + bytes);
}

// Writes the reduced elements of the members from `first` on.
void reduce(const Exchange& exchange, std::size_t first, void* out) {
  const auto& [kind, count, type, operation, root] = exchange.arguments;
  for (std::size_t i = 0; i < count; ++i) {
    double all = load(exchange.inputs.at(0).data(), first + i, type);
    for (std::size_t member = 1; member < exchange.inputs.size(); ++member) {
      const double one = load(exchange.inputs.at(static_cast<int>(member)).data(), first + i, type);
      all = operation == ncclSum ? all + one : std::max(all, one);
    }
    store(out, i, type, all);
  }
}

void write_output(const Exchange& exchange, int rank, void* out) {
  switch (exchange.arguments.kind) {
    case Kind::AllReduce:
      return reduce(exchange, 0, out);
    case Kind::ReduceScatter:
      return reduce(exchange, static_cast<std::size_t>(rank) * exchange.arguments.count, out);
    case Kind::AllGather:
      for (const auto& [member, input] : exchange.inputs) {
        std::memcpy(static_cast<std::byte*>(out) + static_cast<std::size_t>(member) * input.size(),
                    input.data(), input.size());
      }
      return;
    case Kind::Broadcast:
    case Kind::Transfer:
      break;
  }
  const std::vector<std::byte>& input = exchange.inputs.at(exchange.arguments.root);
  std::memcpy(out, input.data(), input.size());
}

// A sender's data may leave before its receiver comes.
bool sends_ahead(const Arguments& arguments, Buffers buffers, std::uint64_t number) {
  return arguments.kind == Kind::Transfer && buffers.in != nullptr &&
         (arguments.count + number) % 2 == 0;
}

// Inverts what a kernel may write at any time until it ends; nothing else may use it then.
void invert(void* data, std::size_t bytes) {
  auto* begin = static_cast<std::byte*>(data);
  for (std::size_t i = 0; begin != nullptr && i < bytes; ++i) begin[i] = ~begin[i];
}

// The kernel of a member. It reads its input when it starts, and again when it ends.
Progress advance(Member& member, std::uint64_t number, const Arguments& arguments,
                 Buffers buffers) {
  Group& group = *member.group;
  const std::lock_guard lock(group.mutex);
  if (member.aborted) return Progress::Ended;
  if (member.ended != number) return Progress::Blocked;
  Exchange& exchange = group.exchanges[number];
  if (exchange.inputs.empty()) exchange.arguments = arguments;
  if (!(exchange.arguments == arguments)) gpus().forbid("members call different collectives");
  const std::size_t each = arguments.count * bytes_of(arguments.type);
  const std::size_t bytes = each * (arguments.kind == Kind::ReduceScatter ? group.size : 1);
  const std::size_t written = each * (arguments.kind == Kind::AllGather ? group.size : 1);
  const auto [own, starts] = exchange.inputs.try_emplace(member.rank);
  if (starts) {
    own->second = copy_of(buffers.in, bytes);
    invert(buffers.out, written);
    return Progress::Begun;
  }
  if (exchange.inputs.size() < group.size && !sends_ahead(arguments, buffers, number))
    return Progress::Blocked;
  if (buffers.out != nullptr) {
    invert(buffers.out, written);
    own->second = copy_of(buffers.in, bytes);
    write_output(exchange, member.rank, buffers.out);
  }
  ++member.ended;
  if (++exchange.left == group.size) group.exchanges.erase(number);
  return Progress::Ended;
}

// Groups that members still join, by their ids.
std::mutex joining_mutex;
std::map<std::string, std::shared_ptr<Group>> joining;
std::uint64_t ids = 0;

// Counts a call of the selected GPU, which may have to fail.
ncclResult_t called() {
  Gpu& gpu = current_gpu();
  if (gpu.nccl_calls_left >= 0 && gpu.nccl_calls_left-- == 0) return ncclSystemError;
  return gpu.error == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

}  // namespace

struct ncclComm {
  std::shared_ptr<Member> member;
  std::uint64_t issued = 0;
  // A call in progress, and how often the host asks for its state before it is done.
  std::function<void()> in_progress;
  std::uint64_t asked_before = 0;
};

namespace {

ncclResult_t issue(ncclComm_t comm, const Arguments& arguments, Buffers buffers,
                   cudaStream_t stream) {
  if (const ncclResult_t failed = called()) return failed;
  if (comm->in_progress) gpus().forbid("a call during another one of the communicator");
  auto put = [member = comm->member, number = comm->issued++, arguments, buffers, stream] {
    shardwright::fake::enqueue(stream,
                               [=] { return advance(*member, number, arguments, buffers); });
  };
  comm->asked_before = current_gpu().draw(3);
  if (comm->asked_before == 0) {
    put();
    return ncclSuccess;
  }
  comm->in_progress = std::move(put);
  return ncclInProgress;
}

void release(ncclComm_t comm) {
  delete comm;
  gpus().count_objects("communicators", -1);
}

}  // namespace

extern "C" {

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    default:
      return "another error";
  }
}

const char* ncclGetLastError(ncclComm_t /*comm*/) {
  return "no further reason";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (const ncclResult_t failed = called()) return failed;
  const std::lock_guard lock(joining_mutex);
  std::memcpy(id->internal, &++ids, sizeof ids);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (const ncclResult_t failed = called()) return failed;
  if (config->blocking != 0) gpus().forbid("a communicator whose calls wait");
  const std::lock_guard lock(joining_mutex);
  const std::string key(id.internal, sizeof id.internal);
  std::shared_ptr<Group>& group = joining[key];
  if (!group) group = std::make_shared<Group>(ranks);
  auto member = std::make_shared<Member>();
  member->group = group;
  member->rank = rank;
  const std::lock_guard group_lock(group->mutex);
  if (++group->joined == group->size) joining.erase(key);
  *comm = new ncclComm{std::move(member), 0, {}, 0};
  gpus().count_objects("communicators", 1);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  *state = ncclSuccess;
  if (const ncclResult_t failed = called()) return failed;
  if (comm->in_progress) {
    *state = ncclInProgress;
    if (--comm->asked_before == 0) std::exchange(comm->in_progress, nullptr)();
    return ncclSuccess;
  }
  const Group& group = *comm->member->group;
  const std::lock_guard lock(comm->member->group->mutex);
  if (group.joined < group.size) *state = ncclInProgress;
  if (group.aborted > 0 && gpus().reports_aborts()) *state = ncclRemoteError;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (comm->in_progress) gpus().forbid("a communicator is finalised during a call");
  return called();
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  release(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  {
    Member& member = *comm->member;
    const std::lock_guard lock(member.group->mutex);
    member.aborted = true;
    ++member.group->aborted;
  }
  release(comm);
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  return issue(comm, {Kind::AllReduce, count, type, operation, 0}, {in, out}, stream);
}

ncclResult_t ncclAllGather(const void* in, void* out, std::size_t count_each, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return issue(comm, {Kind::AllGather, count_each, type, ncclSum, 0}, {in, out}, stream);
}

ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t count_each,
                               ncclDataType_t type, ncclRedOp_t operation, ncclComm_t comm,
                               cudaStream_t stream) {
  return issue(comm, {Kind::ReduceScatter, count_each, type, operation, 0}, {in, out}, stream);
}

ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  // A root in place only reads.
  void* written = comm->member->rank == root && in == out ? nullptr : out;
  return issue(comm, {Kind::Broadcast, count, type, ncclSum, root}, {in, written}, stream);
}

ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  if (peer == comm->member->rank) return ncclInvalidArgument;
  return issue(comm, {Kind::Transfer, count, type, ncclSum, comm->member->rank}, {data, nullptr},
               stream);
}

ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (peer == comm->member->rank) return ncclInvalidArgument;
  return issue(comm, {Kind::Transfer, count, type, ncclSum, peer}, {nullptr, data}, stream);
}
}
