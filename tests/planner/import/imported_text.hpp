// Plans from the text of a launch script.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/spec/profile_library.hpp"
#include "planner/import/megatron_plan.hpp"

namespace shardwright::planner {

inline ImportedPlan import_text(const std::string& text, const std::string& cluster = "dgx-h100",
                                const std::string& stack = "megatron-core",
                                const ScriptParameters& parameters = {}) {
  const auto launch = find_launch_arguments(text, "launch.sh", parameters);
  EXPECT_TRUE(launch) << text;
  return imported_plan(*launch, load_cluster(cluster), load_stack(stack), std::nullopt);
}

}  // namespace shardwright::planner
