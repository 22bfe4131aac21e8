#include "gui/models/freed_memory.hpp"

#include <malloc.h>

namespace shardwright::gui {

void return_freed_memory() {
  malloc_trim(0);
}

}  // namespace shardwright::gui
