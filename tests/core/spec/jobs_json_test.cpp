#include "core/spec/jobs_json.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/thrown.hpp"

namespace shardwright {
namespace {

using nlohmann::json;
using Nodes = std::vector<std::int64_t>;

json two_jobs() {
  return {{"schema", kJobsSchema},
          {"version", 1},
          {"training",
           {{{"name", "a"}, {"plan", "a.json"}, {"nodes", "0-3"}, {"start_s", 2.0}},
            {{"name", "b"}, {"plan", "b.json"}}}},
          {"storage", {{{"name", "disk"}, {"direction", "read"}, {"nodes", "0"}, {"bytes", 1e9}}}}};
}

TEST(Jobs, ADocumentIsReadWithItsDefaults) {
  const JobsSpec jobs = read_jobs(two_jobs(), "jobs.json");
  ASSERT_EQ(jobs.training.size(), 2U);
  EXPECT_EQ(jobs.training[0].nodes, "0-3");
  EXPECT_EQ(jobs.training[0].start, Seconds(2.0));
  EXPECT_EQ(jobs.training[1].nodes, "");
  ASSERT_EQ(jobs.storage.size(), 1U);
  EXPECT_EQ(jobs.storage[0].direction, StorageDirection::Read);
  EXPECT_EQ(jobs.storage[0].bytes, gigabytes(1));
  EXPECT_EQ(jobs.steps, 4);
}

TEST(Jobs, MistakesAreNamedByTheirPlaces) {
  const auto places = [](const json& patch) {
    json document = two_jobs();
    document.merge_patch(patch);
    return problems_of([&] { read_jobs(document, "jobs.json"); });
  };
  EXPECT_EQ(places({{"steps", 0}}), std::vector<std::string>{"/steps"});
  EXPECT_EQ(places({{"training", json::array()}}), std::vector<std::string>{"/training"});
  EXPECT_EQ(places({{"storage",
                     {{{"name", "a"}, {"direction", "write"}, {"nodes", "0"}, {"bytes", 1.0}}}}}),
            std::vector<std::string>{"/storage/0/name"});
  EXPECT_EQ(places({{"storage",
                     {{{"name", "c"}, {"direction", "aside"}, {"nodes", "0"}, {"bytes", 0.0}}}}}),
            (std::vector<std::string>{"/storage/0/direction", "/storage/0/bytes"}));
}

TEST(Jobs, NodeListsAreRangesInOrder) {
  EXPECT_EQ(node_list("0-3,7,5-6", 10), (Nodes{0, 1, 2, 3, 7, 5, 6}));
  EXPECT_EQ(node_list("4", 4), Nodes{4});
  for (const char* wrong : {"", "-1", "3-2", "1,1", "0-3,2", "11", "1,", "a", "1 2", "0-", "0--1",
                            "99999999999999999999"})
    EXPECT_FALSE(node_list(wrong, 10)) << wrong;
  EXPECT_EQ(node_list_text({0, 1, 2, 3, 7, 5, 6}), "0-3,7,5-6");
  EXPECT_EQ(node_list_text({}), "");
}

}  // namespace
}  // namespace shardwright
