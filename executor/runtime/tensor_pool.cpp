#include "executor/runtime/tensor_pool.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"

namespace shardwright::executor {

TensorPool::Key TensorPool::key_of(TensorRef ref, const Call& call) const {
  const bool per_microbatch = program_.tensors[ref.tensor].per_microbatch;
  return {ref.tensor, call.layer + ref.layer_offset, per_microbatch ? call.microbatch : -1};
}

std::size_t TensorPool::bytes_of(TensorRef ref) const {
  return static_cast<std::size_t>(std::ceil(program_.tensors[ref.tensor].bytes.value()));
}

std::shared_ptr<void> TensorPool::read(TensorRef ref, const Call& call) const {
  const auto found = alive_.find(key_of(ref, call));
  SHARDWRIGHT_CHECK(found != alive_.end(),
                    program_.tensors[ref.tensor].name + " is read before it is written");
  return found->second;
}

std::shared_ptr<void> TensorPool::write(TensorRef ref, const Call& call) {
  std::shared_ptr<void>& memory = alive_[key_of(ref, call)];
  if (!memory) {
    memory = kernels_.allocate(bytes_of(ref));
    alive_bytes_ += bytes_of(ref);
    peak_bytes_ = std::max(peak_bytes_, alive_bytes_);
  }
  return memory;
}

void TensorPool::free(TensorRef ref, const Call& call) {
  if (alive_.erase(key_of(ref, call)) > 0) alive_bytes_ -= bytes_of(ref);
}

}  // namespace shardwright::executor
