// What a source calls its accelerators, as a shipped profile.
//
// "H100-SXM5-80GB", "8x H100 SXM5", "DGX A100 (320GB)": a product, with it the size of its memory
// or of that of a whole node, and at times words about the rest of the machine ("a3-megagpu-8g",
// "8x 400G NICs"), which say nothing of memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.hpp"

namespace shardwright::sim {

// A product by its name and, where no profile has the memory that the name states, with that
// memory.
struct AcceleratorText {
  std::optional<std::string> profile;
  Bytes memory;  // in place of the profile's; zero: the profile's holds
  // Of the machine that is named: 16 of "a2-megagpu-16g" or "DGX-2".
  std::optional<std::int64_t> per_node;
  std::vector<std::string> filled_in;  // what was divided, or read and not taken
};

// A size is taken as memory where the product is sold with it, or where a node's accelerators are
// and the size is that of all of them.
AcceleratorText read_accelerator_text(const std::string& whole,
                                      std::optional<std::int64_t> per_node);

// The shipped profile that a text means, whatever stands in it for the product ("p5.48xlarge" is
// "h100-sxm"); the text itself where there is none.
std::string accelerator_name(const std::string& text);

}  // namespace shardwright::sim
