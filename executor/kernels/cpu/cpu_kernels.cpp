#include "executor/kernels/cpu/cpu_kernels.hpp"

#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "executor/kernels/cpu/attention.hpp"
#include "executor/kernels/cpu/elementwise.hpp"
#include "executor/kernels/cpu/linear.hpp"
#include "executor/kernels/cpu/norm.hpp"
#include "executor/kernels/cpu/optimizer.hpp"
#include "executor/kernels/cpu/vocabulary.hpp"

namespace shardwright::executor {

template <class Real>
std::shared_ptr<void> CpuKernels<Real>::allocate(std::size_t bytes) {
  constexpr std::size_t kAlignment = 64;
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return {memory, &std::free};
}

template <class Real>
std::size_t CpuKernels<Real>::memory_used() const {
  constexpr std::size_t kKibibyte = 1024;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * kKibibyte;
}

template <class Real>
void CpuKernels<Real>::upload(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

template <class Real>
void CpuKernels<Real>::download(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

template class CpuKernels<float>;
template class CpuKernels<double>;

}  // namespace shardwright::executor
