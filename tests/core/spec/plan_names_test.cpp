#include "core/spec/plan_names.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace shardwright {
namespace {

template <class E>
void expect_a_name_for_each(const EnumNames<E>& names, E last) {
  EXPECT_EQ(names.size(), static_cast<std::size_t>(last) + 1);
  std::set<std::string> distinct;
  for (const auto& [name, value] : names) {
    EXPECT_EQ(name_of(value), name);
    distinct.insert(name);
  }
  EXPECT_EQ(distinct.size(), names.size());
}

TEST(PlanNames, EachChoiceHasOneName) {
  expect_a_name_for_each(schedule_names(), ScheduleKind::DualPipe);
  expect_a_name_for_each(recompute_names(), RecomputePolicy::Full);
  expect_a_name_for_each(context_parallel_names(), ContextParallelKind::Ulysses);
  expect_a_name_for_each(axis_names(), Axis::Pipeline);
}

}  // namespace
}  // namespace shardwright
