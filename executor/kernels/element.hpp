// Formats of numbers in buffers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardwright::executor {

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

}  // namespace shardwright::executor
