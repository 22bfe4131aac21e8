// Every profile that Shardwright ships loads, is complete and says where its figures come from.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/base/json_reader.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/figures.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/run_json.hpp"
#include "core/spec/stack_json.hpp"

namespace shardwright {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::vector<fs::path> profile_files() {
  std::vector<fs::path> files;
  const fs::path root = fs::path(SHARDWRIGHT_SOURCE_DIR) / "hardware_profiles";
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  return files;
}

// A part's self-contained text read back.
PartLibrary no_parts() {
  return {.names = [](const std::string&) { return std::vector<std::string>{}; },
          .read = [](const std::string&, const std::string&) { return json(); }};
}

TEST(ShippedProfiles, AllFoldersAreFilled) {
  EXPECT_GE(shipped_accelerators().size(), 18u);
  EXPECT_GE(shipped_clusters().size(), 26u);
  EXPECT_GE(shipped_stacks().size(), 18u);
}

TEST(ShippedProfiles, FileNamesAreTheProfilesNames) {
  for (const fs::path& file : profile_files())
    EXPECT_EQ(read_json_file(file).at("name"), file.stem().string()) << file;
}

TEST(ShippedProfiles, EveryFigureHasASourceAndNoSourceIsUnused) {
  for (const fs::path& file : profile_files()) {
    ProblemList problems(file.string());
    Sources sources;
    const json document = read_json_file(file);
    separate_figures(document, "", problems, sources);
    EXPECT_NO_THROW(problems.throw_if_any()) << file;
    std::set<std::string> used;
    for (const auto& [pointer, provenance] : sources) {
      EXPECT_NE(provenance.source, kGivenWithoutSource) << file << pointer;
      used.insert(provenance.source);
    }
    if (document.contains("sources")) {
      EXPECT_EQ(used.size(), document.at("sources").size()) << file;
    }
  }
}

TEST(ShippedProfiles, ClustersLeaveNothingToFillInAndRoundTrip) {
  for (const std::string& name : shipped_clusters()) {
    const ClusterSpec cluster = load_cluster(name);
    EXPECT_EQ(cluster.name, name);
    EXPECT_TRUE(cluster.filled_in.empty()) << name << ": " << cluster.filled_in.front();
    const std::string text = to_json(cluster).dump(2);
    const ClusterSpec again = read_cluster(json::parse(text), name, no_parts());
    EXPECT_TRUE(to_json(again).dump(2) == text) << name;
    EXPECT_TRUE(again == cluster) << name;
  }
}

TEST(ShippedProfiles, AcceleratorsRoundTrip) {
  for (const std::string& name : shipped_accelerators()) {
    const AcceleratorSpec accelerator = load_accelerator(name);
    const json document = json::parse(to_json(accelerator).dump());
    EXPECT_TRUE(read_accelerator(document, name) == accelerator) << name;
  }
}

TEST(ShippedProfiles, StacksLeaveNothingToFillInAndRoundTrip) {
  for (const std::string& name : shipped_stacks()) {
    const StackSpec stack = load_stack(name);
    EXPECT_TRUE(stack.filled_in.empty()) << name << ": " << stack.filled_in.front();
    EXPECT_GT(stack.notes.size(), 40u) << name << " does not say where its facts come from";
    EXPECT_TRUE(read_stack(json::parse(to_json(stack).dump()), name) == stack) << name;
  }
}

TEST(ShippedProfiles, RunsRoundTrip) {
  EXPECT_GE(shipped_runs().size(), 2u);
  for (const std::string& name : shipped_runs()) {
    const RunSpec run = load_run(name);
    EXPECT_EQ(run.name, name);
    EXPECT_TRUE(read_run(json::parse(to_json(run).dump()), name) == run) << name;
  }
}

// Every part is used by a cluster or is an accelerator that stands for itself.
TEST(ShippedProfiles, EveryNodeAndFabricIsPartOfACluster) {
  std::set<std::string> used;
  for (const std::string& name : shipped_clusters()) {
    const ClusterSpec cluster = load_cluster(name);
    used.insert("nodes/" + cluster.node.name);
    used.insert("fabrics/" + cluster.fabric.name);
  }
  for (const fs::path& file : profile_files()) {
    const std::string folder = file.parent_path().filename().string();
    if (folder != "nodes" && folder != "fabrics") continue;
    EXPECT_TRUE(used.contains(folder + "/" + file.stem().string())) << file;
  }
}

}  // namespace
}  // namespace shardwright
