// Memory that large steps and searches have freed.
#pragma once

namespace shardwright::gui {

// Gives freed memory back to the system. It does so in the background, because the allocator then
// waits for each thread that allocates.
// The allocator would otherwise keep it: a step of millions of ops leaves a gigabyte.
void return_freed_memory();

// Makes blocks of a megabyte and more go back to the system as soon as they are freed. The
// allocator would otherwise keep ever larger ones in the heap of the thread that has used them: the
// heap of each worker would stay as large as its largest step.
void return_large_blocks_at_once();

}  // namespace shardwright::gui
