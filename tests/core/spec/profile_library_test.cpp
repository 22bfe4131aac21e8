// Finding profiles: by name, by path, by the names of CUDA.
#include "core/spec/profile_library.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/data_directory.hpp"
#include "core/base/json_reader.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/spec_document.hpp"
#include "tests/scratch_path.hpp"
#include "tests/thrown.hpp"

namespace shardwright {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST(ProfileLibrary, ListsAreSortedAndHoldTheNamesThatUsersStartFrom) {
  const std::vector<std::string> clusters = shipped_clusters();
  EXPECT_TRUE(std::ranges::is_sorted(clusters));
  const char* const kNames[] = {"dgx-v100",
                                "dgx-a100",
                                "hgx-a100-40gb",
                                "dgx-h100",
                                "dgx-h200",
                                "dgx-b200",
                                "hgx-b300",
                                "gb200-nvl72",
                                "gb300-nvl72",
                                "h800-ib",
                                "a800-ib",
                                "h20-node",
                                "aws-p4d",
                                "aws-p5",
                                "azure-nd-h100-v5",
                                "azure-nd-a100-v4",
                                "gcp-a3-mega",
                                "grand-teton-h100-roce",
                                "selene",
                                "mi250x-frontier",
                                "mi300x-node",
                                "l40s-pcie-workstation",
                                "rtx4090-workstation",
                                "tpu-v5p-torus",
                                "ocs-torus"};
  EXPECT_THAT(clusters, ::testing::IsSupersetOf(kNames));
}

TEST(ProfileLibrary, AWrongNameIsAnErrorWithTheNearestOne) {
  EXPECT_THAT(thrown_by([] { load_cluster("dgx-h10"); }), HasSubstr("did you mean \"dgx-h100\"?"));
  EXPECT_THAT(thrown_by([] { load_stack("megatron-cor"); }),
              HasSubstr("did you mean \"megatron-core\"?"));
  EXPECT_THAT(thrown_by([] { load_accelerator("h100sxm"); }),
              HasSubstr("did you mean \"h100-sxm\"?"));
  EXPECT_THAT(thrown_by([] { load_cluster("no/such/file.json"); }), HasSubstr("no such file"));
  EXPECT_THAT(thrown_by([] { load_cluster(""); }), HasSubstr("one of "));
}

TEST(ProfileLibrary, AUsersClusterMayNameShippedPartsAndFilesBesideIt) {
  const fs::path folder = scratch_path("profile_library_test");
  fs::create_directories(folder);
  AcceleratorSpec chip = load_accelerator("h100-sxm");
  chip.name = "my-chip";
  chip.memory = gigabytes(200);
  std::ofstream(folder / "my-chip.json") << to_json(chip);
  std::ofstream(folder / "mine.json")
      << R"({"schema": "shardwright/cluster", "version": 1, "name": "mine",
             "accelerator": "my-chip.json", "node": "dgx-h100", "fabric": "ib-ndr-rail"})";
  const ClusterSpec cluster = load_cluster((folder / "mine.json").string());
  fs::remove_all(folder);
  EXPECT_EQ(cluster.accelerator.memory, gigabytes(200));
  EXPECT_EQ(cluster.node, load_cluster("dgx-h100").node);
  // The report names the values that the file leaves out.
  ASSERT_EQ(cluster.filled_in.size(), 1u);
  EXPECT_THAT(cluster.filled_in.front(), HasSubstr("/power_usage_effectiveness_ratio"));
}

TEST(ProfileLibrary, EveryAcceleratorIsFoundByItsOwnNameAndAliases) {
  for (const std::string& name : shipped_accelerators()) {
    EXPECT_EQ(find_accelerator(name).value_or("nothing"), name);
    for (const std::string& alias : load_accelerator(name).aliases)
      EXPECT_EQ(find_accelerator(alias).value_or("nothing"), name) << alias;
  }
}

TEST(ProfileLibrary, NoNameMeansTwoAccelerators) {
  std::map<std::string, std::string> profiles;
  for (const std::string& profile : shipped_accelerators()) {
    for (const std::string& alias : load_accelerator(profile).aliases)
      EXPECT_TRUE(profiles.emplace(alias, profile).second) << alias << " of " << profile;
  }
}

TEST(ProfileLibrary, StacksAndClustersAreFoundByTheirOtherNames) {
  EXPECT_EQ(load_stack("torchtitan").name, "fsdp2");
  EXPECT_EQ(load_stack("deepspeed").name, "deepspeed-zero");
  EXPECT_EQ(read_given_stack(nlohmann::json("Megatron Core"), "plan").name, "megatron-core");
  EXPECT_THROW(load_stack("titan"), InputError);
  std::map<std::string, std::string> owners;
  for (const StackSpec& stack : shipped_stack_specs())
    for (const std::string& alias : stack.aliases) {
      const auto [found, is_new] = owners.emplace(alias, stack.name);
      EXPECT_TRUE(is_new) << alias << " means " << found->second << " and " << stack.name;
    }
}

TEST(ProfileLibrary, WhatIsNotShippedIsNotFound) {
  for (const char* name : {"", "-", "NVIDIA A100", "TPU v3", "Tesla V100-SXM2", "h100"})
    EXPECT_EQ(find_accelerator(name).value_or("nothing"), "nothing") << name;
}

// Variants of a stack are patches on its profile, so that a figure has one place.
TEST(ProfileLibrary, FiguresOfAVariantAreThoseOfItsBaseButForWhatItsProfileStates) {
  const StackSpec variant = load_stack("megatron-bridge-mla-cuda-graphs");
  StackSpec base = load_stack("nemo-te");
  EXPECT_TRUE(variant.host.cuda_graphs);
  EXPECT_TRUE(variant.communication.sends_tokens_once_per_node);
  EXPECT_EQ(variant.memory.optimizer_state_bytes, Bytes(4));
  EXPECT_EQ(variant.host.launch_time, base.host.launch_time);
  EXPECT_EQ(variant.sources.at("/host/launch_s"), base.sources.at("/host/launch_s"));
  EXPECT_EQ(stack_that_states(variant.name, "/host/launch_s"), "nemo-te");
  EXPECT_EQ(stack_that_states(variant.name, "/host/cuda_graphs"), "megatron-bridge-cuda-graphs");
  EXPECT_EQ(stack_that_states(variant.name, "/memory/optimizer_state_bytes"), variant.name);
  EXPECT_EQ(stack_that_states("my-stack", "/host/launch_s"), "my-stack");
}

// These figures set the stacks apart in the published results.
TEST(ProfileLibrary, StacksDifferInWhatTheirSourcesSay) {
  EXPECT_FALSE(load_stack("megatron-lm-2021").fusion.flash_attention);
  EXPECT_TRUE(load_stack("megatron-core").fusion.flash_attention);
  EXPECT_FALSE(load_stack("fsdp2").fusion.activation);
  EXPECT_TRUE(load_stack("fsdp2-compile").fusion.activation);
  EXPECT_EQ(load_stack("fsdp1").gradients.buckets, GradientBuckets::PerLayer);
  EXPECT_FALSE(load_stack("nemo-te").gradients.fp32_reduction);
  EXPECT_LT(load_stack("shardwright").host.launch_time, load_stack("fsdp2").host.launch_time);
}

// A fit gives figures of the device that it was run for; those of another one are assumptions.
TEST(ProfileLibrary, FiguresOfATrainingFitAreFitted) {
  std::size_t seen = 0;
  const auto look = [&](const auto& self, const nlohmann::json& value,
                        const std::string& file) -> void {
    if (!value.is_structured()) return;
    if (value.is_object() && value.value("source", nlohmann::json()) == "training-fit") {
      ++seen;
      EXPECT_NE(value.at("confidence"), "assumed") << file;
    }
    for (const auto& member : value) self(self, member, file);
  };
  for (const char* folder : {"accelerators", "stacks"}) {
    const auto path = data_directory() / "hardware_profiles" / folder;
    for (const auto& entry : std::filesystem::directory_iterator(path))
      look(look, read_json_file(entry.path()), entry.path().string());
  }
  EXPECT_GT(seen, 10U);
}

}  // namespace
}  // namespace shardwright
