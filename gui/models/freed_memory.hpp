// Memory that large steps and searches have freed.
#pragma once

namespace shardwright::gui {

// Gives it back to the system, which the allocator would otherwise keep it from: a step of millions of
// ops leaves a gigabyte.
void return_freed_memory();

}  // namespace shardwright::gui
