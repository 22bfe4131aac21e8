// The tensors of a step that are alive, as the ops allocate and free them in the order of issue.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "core/program/program.hpp"
#include "executor/kernels/kernels.hpp"

namespace shardwright::executor {

class TensorPool {
 public:
  TensorPool(const Program& program, Kernels& kernels) : program_(program), kernels_(kernels) {}

  // The instance that an op of this call reads, or writes: allocated if it is not alive.
  std::shared_ptr<void> read(TensorRef ref, const Call& call) const;
  std::shared_ptr<void> write(TensorRef ref, const Call& call);
  // The memory is given back when the ops that use it have run.
  void free(TensorRef ref, const Call& call);

  std::size_t bytes_of(TensorRef ref) const;
  // Of what is alive, and the most since the pool was made.
  std::size_t alive_bytes() const { return alive_bytes_; }
  std::size_t peak_bytes() const { return peak_bytes_; }

 private:
  using Key = std::tuple<TensorId, std::int32_t, std::int32_t>;  // tensor, layer, microbatch

  Key key_of(TensorRef ref, const Call& call) const;

  const Program& program_;
  Kernels& kernels_;
  std::map<Key, std::shared_ptr<void>> alive_;
  std::size_t alive_bytes_ = 0, peak_bytes_ = 0;
};

}  // namespace shardwright::executor
