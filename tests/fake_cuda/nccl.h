// Replaces NCCL's header of this name: what the executor's communicators use of it, with NCCL's
// names and values.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

struct ncclComm;
using ncclComm_t = ncclComm*;

struct ncclUniqueId {
  char internal[128];
};

enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7
};

enum ncclDataType_t { ncclUint8 = 1, ncclFloat32 = 7, ncclFloat64 = 8, ncclBfloat16 = 9 };
enum ncclRedOp_t { ncclSum = 0, ncclProd = 1, ncclMax = 2 };

struct ncclConfig_t {
  std::size_t size;
  int blocking;
};
#define NCCL_CONFIG_INITIALIZER \
  { sizeof(ncclConfig_t), 1 }

extern "C" {
const char* ncclGetErrorString(ncclResult_t result);
const char* ncclGetLastError(ncclComm_t comm);
ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllGather(const void* in, void* out, std::size_t count_each, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t count_each,
                               ncclDataType_t type, ncclRedOp_t operation, ncclComm_t comm,
                               cudaStream_t stream);
ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream);
}
