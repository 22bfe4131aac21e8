// The chain of spans that the end of the step waits for.
//
// Found backwards from the span that ends last: before each span comes the one whose end let it
// start. With the program that is the latest to end of what it waits for: the op before it on its
// stream, its waits, and for messages and collectives between stages the same of the other ends.
// Without it (a measurement of another program) it is the span of the same rank that ended last
// before it started; for messages also of the other end's rank. What lies between two spans of the
// path is time in which the next one was not yet issued by the host.
#pragma once

#include <vector>

#include "core/program/program.hpp"
#include "core/timeline/timeline.hpp"

namespace shardwright::gui {

// Indices into `timeline.spans`, from the start of the step to its end. They do not overlap in
// time. `program` may be null; it is not used where the timeline is not a prediction of it.
std::vector<std::uint32_t> critical_path(const Timeline& timeline,
                                         const Program* program = nullptr);

}  // namespace shardwright::gui
