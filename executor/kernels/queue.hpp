// Where work is issued to: an in-order queue of a device.
#pragma once

namespace shardwright::executor {

// A cudaStream_t on CUDA. Work on the CPU runs in the thread that issues it: null.
using Queue = void*;

}  // namespace shardwright::executor
