#include "core/base/distinct_names.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

namespace shardwright {
namespace {

using Names = std::vector<std::string>;

TEST(DistinctNames, AreAsShortAsTheyCanBe) {
  EXPECT_EQ(distinct_names({"a/run", "b/other"}), (Names{"run", "other"}));
  EXPECT_EQ(distinct_names({"a/run", "b/run"}), (Names{"a/run", "b/run"}));
  EXPECT_EQ(distinct_names({"x/a/run/", "./x/b/../b/run", "/c"}), (Names{"a/run", "b/run", "c"}));
  EXPECT_EQ(distinct_names({"/run", "/a/run"}), (Names{"/run", "a/run"}));
  EXPECT_EQ(distinct_names({"/"}), Names{"/"});
  EXPECT_EQ(distinct_names({"run", "./run"}), (Names{"run", "run"}));
}

TEST(DistinctNames, OfTheFolderThatOneIsInAreItsOwn) {
  const std::filesystem::path here = std::filesystem::current_path();
  EXPECT_EQ(distinct_names({"."}), Names{here.filename().string()});
  EXPECT_EQ(distinct_names({"./", "below"}), (Names{here.filename().string(), "below"}));
  EXPECT_EQ(distinct_names({".."}), Names{here.parent_path().filename().string()});
}

// True if the path ends with the name, at a slash.
bool ends_with(const std::string& path, const std::string& name) {
  return path == name || path.ends_with("/" + name);
}

TEST(DistinctNames, AreEndsOfTheirPathAloneAndWithoutTheirFirstPartOfAnother) {
  std::mt19937_64 random(2026);
  for (int i = 0; i < 500; ++i) {
    Names paths(1 + random() % 4);
    for (std::string& path : paths) {
      const std::size_t depth = 1 + random() % 4;
      for (std::size_t part = 0; part < depth; ++part) path += random() % 2 == 0 ? "/a" : "/b";
    }
    const Names names = distinct_names(paths);
    ASSERT_EQ(names.size(), paths.size());
    for (std::size_t one = 0; one < paths.size(); ++one) {
      EXPECT_TRUE(ends_with(paths[one], names[one]));
      const std::size_t first_part = names[one].find('/', 1);
      bool shorter_is_shared = false;
      for (const std::string& other : paths) {
        if (other == paths[one]) continue;
        EXPECT_FALSE(ends_with(other, names[one])) << names[one] << " of " << paths[one];
        shorter_is_shared = shorter_is_shared || first_part == std::string::npos ||
                            ends_with(other, names[one].substr(first_part + 1));
      }
      if (first_part != std::string::npos) {
        EXPECT_TRUE(shorter_is_shared) << names[one];
      }
    }
  }
}

}  // namespace
}  // namespace shardwright
