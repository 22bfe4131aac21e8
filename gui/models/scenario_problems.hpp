// What is wrong with a field of the scenario, in a few lines.
#pragma once

#include <QString>
#include <vector>

#include "core/base/error.hpp"

namespace shardwright::gui {

// A line each, of at most the first four; what is expected alike is said once. `has_list`: the
// field lists the names that it takes, which are not told again.
QString problems_text(const std::vector<Problem>& problems, bool has_list);

}  // namespace shardwright::gui
