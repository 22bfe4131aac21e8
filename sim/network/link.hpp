// Links of a network are numbered from zero.
#pragma once

#include <cstdint>

namespace shardwright::sim {

using LinkIndex = std::uint32_t;

}  // namespace shardwright::sim
