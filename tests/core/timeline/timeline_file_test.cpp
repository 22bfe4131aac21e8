#include "core/timeline/timeline_file.hpp"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

TEST(TimelineFile, IsKnownByItsNameAlone) {
  const TimelineFile file{120, 7};
  EXPECT_EQ(name_of(file), "timeline-120-7.json");
  EXPECT_EQ(parse_timeline_name(name_of(file)), file);
  for (const char* other :
       {"timeline-.json", "timeline-1.json", "timeline-1-.json", "timeline--1-0.json",
        "timeline-1-2-3.json", "timeline-01-0.json", "timeline-1-0.json.tmp",
        "my-timeline-1-0.json", "timeline-99999999999999999999-0.json", "timeline.json", ""})
    EXPECT_EQ(parse_timeline_name(other), std::nullopt) << other;
}

}  // namespace
}  // namespace shardwright
