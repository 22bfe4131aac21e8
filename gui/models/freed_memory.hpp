// Memory that large steps and searches have freed.
#pragma once

namespace shardwright::gui {

// Gives freed memory back to the system. It does so in the background, because the allocator then
// waits for each thread that allocates.
// The allocator would otherwise keep it: a step of millions of ops leaves a gigabyte.
void return_freed_memory();

}  // namespace shardwright::gui
