// Number formats of buffers, and queues of devices.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardwright::executor {

// An in-order queue of a device: a cudaStream_t on CUDA. On the CPU it is null, and work runs in
// the calling thread.
using Queue = void*;

enum class Element : std::uint8_t { Float32, Float64, Bfloat16 };

constexpr std::size_t bytes_of(Element element) {
  switch (element) {
    case Element::Float64:
      return 8;
    case Element::Bfloat16:
      return 2;
    case Element::Float32:
      break;
  }
  return 4;
}

// The place of an element of an array.
inline void* element_at(void* array, std::size_t index, Element element) {
  return static_cast<std::byte*>(array) + index * bytes_of(element);
}
inline const void* element_at(const void* array, std::size_t index, Element element) {
  return static_cast<const std::byte*>(array) + index * bytes_of(element);
}

}  // namespace shardwright::executor
