// The hardware of published measurements.
#include "sim/validation/row_cluster.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/spec/profile_library.hpp"
#include "sim/validation/row_scenario.hpp"
#include "sim/validation/training_row.hpp"
#include "tests/sim/validation/shipped_rows.hpp"

namespace shardwright::sim {
namespace {

ClusterSpec cluster_of(const TrainingRow& row, std::vector<std::string>& filled_in) {
  std::string reason;
  const auto cluster = cluster_of_row(row, filled_in, reason);
  EXPECT_TRUE(cluster) << reason;
  return cluster.value_or(ClusterSpec{});
}

ClusterSpec cluster_for(const std::string& gpu, const std::string& inside,
                        std::vector<std::string>& filled_in) {
  TrainingRow row;
  row.cluster.gpu = gpu;
  row.cluster.gpus = 16;
  row.cluster.gpus_per_node = 8;
  row.cluster.intra_node = inside;
  return cluster_of(row, filled_in);
}

// As its datasheet has it: 141 GB of HBM3e in place of 96.
TEST(RowCluster, TheLargerH20IsKnownByItsName) {
  TrainingRow row;
  row.cluster.gpus = 8;
  std::vector<std::string> said;
  std::string reason;
  for (const auto& [gpu, memory] :
       {std::pair{"H20", 96.0}, {"H20-3e", 141.0}, {"H20 141GB", 141.0}}) {
    row.cluster.gpu = gpu;
    const auto cluster = cluster_of_row(row, said, reason);
    ASSERT_TRUE(cluster) << reason;
    EXPECT_NEAR(cluster->accelerator.memory / gigabytes(1.0), memory, 8.0) << gpu;
  }
}

// Chips of a pod are joined whichever host they hang on.
TEST(RowCluster, HostsDoNotCutATorus) {
  TrainingRow row;
  row.cluster.gpu = "TPU v5e";
  row.cluster.gpus = 256;
  std::string reason;
  std::vector<std::string> usual, said;
  const auto shipped = cluster_of_row(row, usual, reason);
  row.cluster.gpus_per_node = 4;
  const auto cluster = cluster_of_row(row, said, reason);
  ASSERT_TRUE(cluster && shipped) << reason;
  EXPECT_EQ(*cluster, *shipped);
  EXPECT_TRUE(any_says(said, "hosts do not cut a torus"));
}

// Whatever their number, and with the axes of each slice among those of all.
TEST(RowCluster, ATorusGoesOnBeyondASliceAndThatIsListed) {
  struct Case {
    const char* gpu;
    std::int64_t gpus;
    std::vector<std::int64_t> torus;
  };
  for (const Case& each : {Case{"TPU v5e", 512, {8, 8}},
                           {"TPU v5e", 50944, {796, 8}},
                           {"TPU v5e", 264, {8, 8}},
                           {"TPU v4", 6144, {16, 8, 16}},
                           {"TPU v5p", 17920, {16, 10, 28}}}) {
    TrainingRow row;
    row.cluster.gpu = each.gpu;
    row.cluster.gpus = each.gpus;
    row.cluster.gpus_per_node = 4;
    std::vector<std::string> said;
    const ClusterSpec cluster = cluster_of(row, said);
    EXPECT_EQ(cluster.fabric.torus, each.torus);
    EXPECT_GE(cluster.most_accelerators(), each.gpus);
    EXPECT_TRUE(any_says(said, "is taken to be as fast as the torus")) << each.gpus;
  }
}

TEST(RowCluster, SlicesInTheNotesAreListedWhereOneTorusHoldsThem) {
  const auto lists_slices = [](const std::string& gpu, const std::string& notes) {
    TrainingRow row;
    row.cluster.gpu = gpu;
    row.cluster.gpus = 64;
    row.notes = notes;
    std::vector<std::string> said;
    const ClusterSpec cluster = cluster_of(row, said);
    EXPECT_GE(cluster.most_accelerators().value_or(64), 64);
    return any_says(said, "network between slices");
  };
  for (const char* notes :
       {"2 slices of v5e-32", "Four v5e-16 slices", "2 x v5e-32", "2xv5e-32, remat full",
        "data parallel over two pods", "Multislice training", "num_slices=2",
        "ici_fsdp_parallelism=32, dcn_data_parallelism=2", "2 TPU v5e slices"}) {
    EXPECT_TRUE(lists_slices("TPU v5e", notes)) << notes;
    EXPECT_FALSE(lists_slices("H100", notes)) << notes;
  }
  for (const char* notes : {"", "1 slices of v5e-256", "one slice", "1x v5e-64", "no multislice",
                            "dcn_data_parallelism=1", "a pod slice of v5e-64", "v5e-64"})
    EXPECT_FALSE(lists_slices("TPU v5e", notes)) << notes;
}

TEST(RowCluster, FiguresThatNoNetworkHasAreListedAndNotTaken) {
  for (const char* text : {"-5 Gb/s", "2x -100 Gb/s", "0 Gb/s", "1e9 Gb/s", "1e999 Gb/s",
                           "99999999999999999999x400 Gb/s"}) {
    TrainingRow row;
    row.cluster.gpu = "H100";
    row.cluster.gpus = 16;
    row.cluster.gpus_per_node = 8;
    std::string reason;
    std::vector<std::string> said, plain_said;
    const auto plain = cluster_of_row(row, plain_said, reason);
    row.cluster.inter_node = text;
    const auto cluster = cluster_of_row(row, said, reason);
    ASSERT_TRUE(cluster && plain) << reason;
    EXPECT_EQ(cluster->node.nic.bandwidth, plain->node.nic.bandwidth) << text;
    EXPECT_TRUE(any_says(said, "for \"" + std::string(text) + "\"")) << text;
  }
}

TEST(RowCluster, LinksInsideOfANodeAreThoseOfTheRow) {
  std::vector<std::string> said;
  const ClusterSpec plain = cluster_for("A100-SXM4-80GB", "NVLink3 NVSwitch 600 GB/s", said);
  EXPECT_FALSE(any_says(said, "intra_node"));
  const ClusterSpec unknown = cluster_for("A100-SXM4-80GB", "fast links", said);
  EXPECT_TRUE(any_says(said, "intra_node: as in the shipped cluster"));
  EXPECT_EQ(unknown.node.scale_up.bandwidth, plain.node.scale_up.bandwidth);
  said.clear();
  const ClusterSpec pcie = cluster_for("A100-SXM4-80GB", "PCIe Gen4, no NVLink", said);
  EXPECT_TRUE(any_says(said, "intra_node: PCIe 4 x16"));
  EXPECT_EQ(pcie.node.scale_up.kind, ScaleUpKind::Pcie);
  EXPECT_LT(pcie.node.scale_up.bandwidth, plain.node.scale_up.bandwidth * 0.2);
  const ClusterSpec half = cluster_for("A100-SXM4-80GB", "NVLink 200 GB/s", said);
  EXPECT_EQ(half.node.scale_up.bandwidth, gigabytes_per_second(100));
  // A number that no link has, nor a double.
  const std::string beyond(400, '9');
  const ClusterSpec none = cluster_for("A100-SXM4-80GB", "NVLink " + beyond + " GB/s", said);
  EXPECT_EQ(none.node.scale_up.bandwidth, plain.node.scale_up.bandwidth);
}

TEST(RowCluster, PcieIsOfTheGenerationThatIsStatedOrUsual) {
  struct Case {
    const char* gpu;
    const char* inside;
    double gigabytes;  // per second and direction
    const char* said;
  };
  const Case cases[] = {
      {"V100-PCIE-32GB", "", 15.5, "PCIe 3 x16, the usual one,"},
      {"V100-SXM2-32GB", "PCIe 3.0 x16", 15.5, "PCIe 3 x16 in place"},
      {"V100", "PCIe", 15.5, "the usual one"},
      {"A100-SXM4-80GB", "no NVLink", 31, "PCIe 4 x16, the usual one,"},
      {"A100-SXM4-80GB", "none", 31, "PCIe 4 x16"},
      {"A100-SXM4-80GB", "Ethernet", 31, "PCIe 4 x16"},
      {"H100-SXM5-80GB", "PCIe Gen3", 15.75, "PCIe 3 x16 in place"},
      {"H100 PCIe", "PCIe Gen4", 31.5, "PCIe 4 x16 in place"},
      {"H100 PCIe", "PCIe Gen6", 126, "PCIe 6 x16 in place"},
      {"L40S", "PCIe Gen3", 15.5, "PCIe 3 x16 in place"},
      {"L40S", "PCIe x16", 31, ""},
      {"A100 PCIe", "NVLink", 31, "alone"},
  };
  for (const Case& each : cases) {
    std::vector<std::string> said;
    const ScaleUpSpec links = cluster_for(each.gpu, each.inside, said).node.scale_up;
    EXPECT_EQ(links.kind, ScaleUpKind::Pcie) << each.gpu << ": " << each.inside;
    EXPECT_NEAR(links.bandwidth / gigabytes_per_second(1), each.gigabytes, 0.02 * each.gigabytes)
        << each.gpu << ": " << each.inside;
    EXPECT_TRUE(*each.said == '\0' ? !any_says(said, "intra_node") : any_says(said, each.said))
        << each.gpu << ": " << each.inside;
  }
}

// Cards are no SXM modules.
TEST(RowCluster, CardsAreNotTakenForModulesWithoutAWord) {
  std::vector<std::string> said;
  EXPECT_EQ(cluster_for("A100-PCIE-40GB", "", said).accelerator.name, "a100-pcie-80gb");
  EXPECT_TRUE(any_says(said, "with the memory of \"A100-PCIE-40GB\""));
  EXPECT_EQ(cluster_for("H100 NVL", "", said).node.scale_up.kind, ScaleUpKind::Pcie);
  for (const char* name : {"H100 NVL", "H100 NVL 94GB", "H100-94GB NVL"})
    EXPECT_EQ(cluster_for(name, "", said).accelerator.name, "h100-nvl") << name;
  EXPECT_EQ(cluster_for("H200 NVL", "", said).node.scale_up.kind, ScaleUpKind::Pcie);
  EXPECT_TRUE(any_says(said, "accelerator: h200 for \"H200 NVL\""));
  EXPECT_EQ(cluster_for("A100-40G", "", said).accelerator.name, "a100-40gb");
}

// NVLink joins cards by a bridge between two of them, whatever the generation is called.
TEST(RowCluster, BridgesJoinPairsOfCards) {
  std::vector<std::string> said;
  EXPECT_EQ(cluster_for("H100 NVL", "NVLink 4", said).node.scale_up.kind, ScaleUpKind::Pcie);
  EXPECT_TRUE(any_says(said, "\"NVLink 4\" joins 2 cards"));
  TrainingRow pair;
  pair.cluster.gpu = "H100 NVL";
  pair.cluster.gpus = pair.cluster.gpus_per_node.emplace(2);
  pair.cluster.intra_node = "NVLink 4";
  std::string reason;
  const auto bridged = cluster_of_row(pair, said, reason);
  ASSERT_TRUE(bridged) << reason;
  EXPECT_EQ(bridged->node.scale_up.bandwidth, gigabytes_per_second(300));
  EXPECT_FALSE(bridged->node.scale_up.in_network_reduction);
}

TEST(RowCluster, MachinesAndArchitecturesStandForTheirAccelerators) {
  for (const auto& [text, profile] : {std::pair{"p4d.24xlarge", "a100-40gb"},
                                      {"AWS p4de.24xlarge", "a100-80gb"},
                                      {"p3dn.24xlarge", "v100-sxm2-32gb"},
                                      {"p5.48xlarge", "h100-sxm"},
                                      {"a2-highgpu-8g", "a100-40gb"},
                                      {"DGX-1", "v100-sxm2-32gb"},
                                      {"Selene", "a100-80gb"},
                                      {"NVIDIA Ampere", "a100-80gb"},
                                      {"Blackwell Ultra", "b300"},
                                      {"Hopper", "h100-sxm"}}) {
    std::vector<std::string> said;
    EXPECT_EQ(cluster_for(text, "", said).accelerator.name, profile) << text;
    EXPECT_TRUE(any_says(said, "for \"" + std::string(text) + '"')) << text;
  }
  std::vector<std::string> filled_in;
  std::string reason;
  TrainingRow row;
  const ClusterSpec small = cluster_for("DGX-1V 16GB", "", filled_in);
  EXPECT_EQ(small.accelerator.name, "v100-sxm2-32gb");
  EXPECT_EQ(small.accelerator.memory, gigabytes(16));
  for (const char* text : {"RTX Pro 6000 Blackwell", "A40 (Ampere)", "T4", "Shopper",
                           "A6000 Ampere", "DGX-1 P100", "Titan V (Volta)"}) {
    row.cluster.gpu = text;
    EXPECT_FALSE(cluster_of_row(row, filled_in, reason)) << text;
  }
}

TEST(RowCluster, AMachineThatIsNamedBringsItsNetworkAndItsSize) {
  struct Machine {
    const char* text;
    const char* cluster;
    std::int64_t accelerators;
  };
  for (const Machine& machine :
       {Machine{"p4d.24xlarge", "aws-p4d", 8}, Machine{"p5.48xlarge", "aws-p5", 8},
        Machine{"A3 Mega (a3-megagpu-8g, H100)", "gcp-a3-mega", 8},
        Machine{"a4-highgpu-8g", "gcp-a4", 8}, Machine{"NVIDIA DGX-2", "dgx-v100", 16},
        Machine{"a2-megagpu-16g", "hgx-a100-40gb", 16}}) {
    std::vector<std::string> said;
    TrainingRow row;
    row.cluster.gpu = machine.text;
    row.cluster.gpus = 64;
    std::string reason;
    const auto cluster = cluster_of_row(row, said, reason);
    ASSERT_TRUE(cluster) << machine.text << ": " << reason;
    EXPECT_EQ(cluster->name, machine.cluster);
    EXPECT_EQ(cluster->node.accelerators, machine.accelerators) << machine.text;
    // What the row says of either holds all the same.
    row.cluster.gpus_per_node = 4;
    row.cluster.inter_node = "InfiniBand, 8x400 Gb/s";
    const auto stated = cluster_of_row(row, said, reason);
    ASSERT_TRUE(stated) << machine.text << ": " << reason;
    EXPECT_EQ(stated->node.accelerators, 4) << machine.text;
    EXPECT_EQ(stated->node.nic.bandwidth * static_cast<double>(stated->node.nic.per_node),
              gigabytes_per_second(400))
        << machine.text;
  }
}

TEST(RowCluster, EveryShippedAcceleratorHasACluster) {
  for (const std::string& name : shipped_accelerators()) {
    const auto& clusters = shipped_cluster_specs();
    EXPECT_TRUE(std::any_of(clusters.begin(), clusters.end(), [&name](const ClusterSpec& cluster) {
      return cluster.accelerator.name == name;
    })) << name;
  }
}

TEST(RowCluster, WithoutAWordOfTheNetworkItIsTheUsualOne) {
  std::vector<std::string> said;
  EXPECT_EQ(cluster_for("H800", "", said).name, "h800-ib");
  EXPECT_EQ(cluster_for("A100-40GB", "", said).name, "hgx-a100-40gb");
  EXPECT_EQ(cluster_for("H100", "", said).name, "dgx-h100");
}

TEST(RowCluster, AcceleratorsAsSourcesWriteThem) {
  const auto profile_for = [](const std::string& text) {
    TrainingRow row;
    row.cluster.gpu = text;
    std::vector<std::string> filled_in;
    std::string reason;
    const auto cluster = cluster_of_row(row, filled_in, reason);
    EXPECT_NE(cluster.has_value(), !reason.empty()) << text;
    return cluster ? cluster->accelerator.name : "";
  };
  for (const char* text : {"H100-SXM5-80GB", "NVIDIA H100 80GB HBM3", "8x H100 SXM5", "h100"})
    EXPECT_EQ(profile_for(text), "h100-sxm") << text;
  for (const char* text : {"A100 (source: NVIDIA Ampere)", "A100-80G", "A100-SXM4-80GB"})
    EXPECT_EQ(profile_for(text), "a100-80gb") << text;
  EXPECT_EQ(profile_for("A100-SXM4-40GB"), "a100-40gb");
  EXPECT_EQ(profile_for("AMD Instinct MI300X"), "mi300x");
  EXPECT_EQ(profile_for("Ascend 910B"), "");
  EXPECT_EQ(profile_for(""), "");
}

TEST(RowCluster, MemoryThatNoProfileHasIsThatOfTheRow) {
  TrainingRow row;
  row.cluster.gpu = "Tesla V100-SXM2-16GB";
  std::vector<std::string> filled_in;
  std::string reason;
  const auto cluster = cluster_of_row(row, filled_in, reason);
  ASSERT_TRUE(cluster) << reason;
  EXPECT_EQ(cluster->accelerator.name, "v100-sxm2-32gb");
  EXPECT_EQ(cluster->accelerator.memory, gigabytes(16));
  EXPECT_TRUE(any_says(filled_in, "accelerator: v100-sxm2-32gb with the memory of"));
}

// Sizes of nodes, hosts and links stand beside the product, too.
TEST(RowCluster, MemoryIsThatOfOneAccelerator) {
  struct Case {
    const char* gpu;
    std::int64_t per_node;
    double gigabytes;  // of one
    const char* said;
  };
  const Case cases[] = {
      {"A100-SXM4-40GB", 8, 40, ""},
      {"8x V100 (16 GB)", 8, 16, "with the memory of"},
      {"A100 64G", 4, 64, "with the memory of"},
      {"DGX A100 (320GB)", 8, 40, "40 GB each, a share of the node's 320GB"},
      {"4x A100 (160 GB)", 8, 40, "40 GB each"},
      {"8x V100 (128GB)", 8, 16, "16 GB each"},
      {"MI250X 128GB", 8, 64, "\"128GB\" of \"MI250X 128GB\" is not taken"},
      {"GH200 480GB", 1, 96, "\"480GB\" of"},
      {"GH200 480GB", 4, 96, "\"480GB\" of"},
      {"A100 40GB NVLink", 8, 40, ""},
      {"A100 40GB, 40G Ethernet", 8, 40, "\"40G\" of"},
  };
  for (const Case& each : cases) {
    TrainingRow row;
    row.cluster.gpu = each.gpu;
    row.cluster.gpus_per_node = each.per_node;
    std::vector<std::string> said;
    std::string reason;
    const auto cluster = cluster_of_row(row, said, reason);
    ASSERT_TRUE(cluster) << each.gpu << ": " << reason;
    EXPECT_NEAR(cluster->accelerator.memory / gigabytes(1), each.gigabytes, 0.08 * each.gigabytes)
        << each.gpu;
    EXPECT_EQ(any_says(said, "accelerator: "), *each.said != '\0') << each.gpu;
    EXPECT_TRUE(*each.said == '\0' || any_says(said, each.said)) << each.gpu;
  }
}

TEST(RowCluster, NamesOfInstancesAndLinksSayNothingOfMemory) {
  for (const auto& [text, plain] :
       {std::pair{"H100 (a3-megagpu-8g)", "H100"}, std::pair{"a2-megagpu-16g A100", "A100"},
        std::pair{"H100 SXM, 8x 400G NICs", "H100"}, std::pair{"H100, NVLink 900 GB/s", "H100"},
        std::pair{"DGX H100 640GB", "H100"}, std::pair{"8x H100 (640 GB)", "H100"},
        std::pair{"A100, 40G Ethernet", "A100"}}) {
    std::vector<std::string> said;
    const AcceleratorSpec read = cluster_for(text, "", said).accelerator;
    const AcceleratorSpec of_plain = cluster_for(plain, "", said).accelerator;
    EXPECT_EQ(read.name, of_plain.name) << text;
    EXPECT_EQ(read.memory, of_plain.memory) << text;
  }
}

TEST(RowCluster, OneOfSeveralProductsIsNotTakenWithoutAWord) {
  std::vector<std::string> said;
  EXPECT_FALSE(cluster_for("H100/H200 mix", "", said).name.empty());
  EXPECT_TRUE(any_says(said, "for \"H100/H200 mix\", which names several"));
  std::vector<std::string> of_one;
  EXPECT_FALSE(cluster_for("NVIDIA H100 80GB HBM3 (DGX H100)", "", of_one).name.empty());
  EXPECT_FALSE(any_says(of_one, "names several"));
}

TEST(RowCluster, KeepsTheBandwidthThatTheRowStates) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.cluster.inter_node = "2x100 Gb/s InfiniBand";
  std::vector<std::string> filled_in;
  std::string reason;
  const auto cluster = cluster_of_row(row, filled_in, reason);
  ASSERT_TRUE(cluster) << reason;
  EXPECT_NEAR(cluster->node.nic.bandwidth.value() * static_cast<double>(cluster->node.nic.per_node),
              25e9, 1.0);
}

ClusterSpec cluster_on(const std::string& gpu, const std::string& between,
                       std::vector<std::string>& filled_in) {
  TrainingRow row;
  row.cluster.gpu = gpu;
  row.cluster.gpus = 64;
  row.cluster.gpus_per_node = 8;
  row.cluster.inter_node = between;
  return cluster_of(row, filled_in);
}

// Latencies and what messages reach are those of a protocol, which no bandwidth tells.
TEST(RowCluster, TheNetworkIsOfTheProtocolThatTheRowStates) {
  struct Case {
    const char* gpu;
    const char* between;
    FabricProtocol protocol;
    double gigabits;  // per node
    const char* said;
  };
  const Case cases[] = {
      {"H100", "8x400 Gb/s NDR InfiniBand", FabricProtocol::InfiniBand, 3200, ""},
      {"H100", "8x200 Gb/s HDR InfiniBand", FabricProtocol::InfiniBand, 1600, "row's bandwidth"},
      {"H100", "8x800 Gb/s XDR InfiniBand", FabricProtocol::InfiniBand, 6400, "row's bandwidth"},
      {"H100", "8x200 Gb/s RoCE", FabricProtocol::RoCE, 1600, "row's bandwidth"},
      {"H100", "EFA 1600 Gbps", FabricProtocol::Efa, 1600, "row's bandwidth"},
      {"H100", "8x400 GbE", FabricProtocol::RoCE, 3200, ""},
      {"H100", "8x400 GbE, TCP", FabricProtocol::Ethernet, 3200, "row's bandwidth"},
      {"A100-80GB", "IB EDR", FabricProtocol::InfiniBand, 100, "100 Gb/s per node, for \"IB EDR\""},
      {"A100-80GB", "1600 Gb/s per node EFA", FabricProtocol::InfiniBand, 1600, "in place of efa"},
      {"MI300X", "8x400 Gb/s NDR InfiniBand", FabricProtocol::RoCE, 3200, "in place of infiniband"},
      {"H100", "1600 Gb/s per node", FabricProtocol::Ethernet, 1600,
       "ethernet, as in the shipped cluster"},
  };
  for (const Case& each : cases) {
    std::vector<std::string> said;
    const ClusterSpec cluster = cluster_on(each.gpu, each.between, said);
    EXPECT_EQ(cluster.fabric.protocol, each.protocol) << each.gpu << ": " << each.between;
    const double gigabits = cluster.node.nic.bandwidth / gigabytes_per_second(1.0 / 8.0) *
                            static_cast<double>(cluster.node.nic.per_node);
    EXPECT_NEAR(gigabits, each.gigabits, 1e-6) << each.gpu << ": " << each.between;
    EXPECT_EQ(said.empty(), *each.said == '\0') << each.gpu << ": " << each.between;
    EXPECT_TRUE(*each.said == '\0' || any_says(said, each.said)) << each.between;
  }
}

TEST(RowCluster, NoBandwidthMakesATorusOfSwitches) {
  std::vector<std::string> said;
  for (const char* between : {"8x800 Gb/s", "9.6 Tb/s per node", "8x1600 Gb/s"})
    EXPECT_NE(cluster_on("H100", between, said).fabric.kind, FabricKind::Torus) << between;
  EXPECT_EQ(cluster_on("H100", "3D torus, 9.6 Tb/s per node", said).fabric.kind, FabricKind::Torus);
  EXPECT_EQ(cluster_on("TPU v5p", "", said).fabric.kind, FabricKind::Torus);
}

TEST(RowCluster, OversubscriptionIsThatOfTheThinnestLevel) {
  std::vector<std::string> said;
  const ClusterSpec thin = cluster_on("H100", "8x400 Gb/s NDR InfiniBand, 2:1 blocking", said);
  ASSERT_GE(thin.fabric.levels.size(), 2U);
  EXPECT_EQ(thin.fabric.levels.front().oversubscription, 2.0);
  EXPECT_TRUE(any_says(said, "fabric: 2:1 above switches of 32 nodes"));
  ClusterSpec plain = thin;
  plain.fabric.levels.front().oversubscription = 1.0;
  said.clear();
  EXPECT_EQ(cluster_on("H100", "8x400 Gb/s NDR InfiniBand, non-blocking", said), plain);
  EXPECT_TRUE(said.empty());
  EXPECT_TRUE(any_says((cluster_on("H100", "8x400 Gb/s NDR, oversubscribed", said), said),
                       "\"oversubscribed\" is not taken"));
}

TEST(RowCluster, LongTextsAreRead) {
  for (const char part : {'a', '1', ' ', '(', '-'})
    for (const std::string& text :
         {"H100 " + std::string(100'000, part), std::string(100'000, part)}) {
      TrainingRow row = shipped_row("titan-8b-h200-g64");
      row.cluster.gpu = row.cluster.inter_node = row.cluster.intra_node = text;
      const RowScenario result = scenario_of(row);
      EXPECT_NE(result.scenario.has_value(), !result.reason.empty()) << part;
    }
}

TEST(RowCluster, ProductsThatAreNamedInPassingAreNotTaken) {
  for (const auto& [text, profile] : {std::pair{"H100 (also run on A100)", "h100-sxm"},
                                      {"A100-80GB, also on H100", "a100-80gb"},
                                      {"A100-80GB (not H100)", "a100-80gb"},
                                      {"not A100 but H100", "h100-sxm"},
                                      {"V100 (DGX A100 in a later table)", "v100-sxm2-32gb"},
                                      {"GB200 (2x B200)", "gb200"}}) {
    std::vector<std::string> said;
    EXPECT_EQ(cluster_for(text, "", said).accelerator.name, profile) << text;
    EXPECT_TRUE(any_says(said, "which names several")) << text;
  }
}

// What ran had a network that joins its nodes, whatever the profile knows of.
TEST(RowCluster, JoinsAllNodesThatTheRowRanOn) {
  for (const auto& [gpu, gpus] : {std::pair{"RTX 4090", 64}, std::pair{"A100", 200'000}}) {
    TrainingRow row;
    row.cluster.gpu = gpu;
    row.cluster.gpus = gpus;
    row.cluster.gpus_per_node = 8;
    std::vector<std::string> filled_in;
    std::string reason;
    const auto cluster = cluster_of_row(row, filled_in, reason);
    ASSERT_TRUE(cluster) << reason;
    EXPECT_GE(cluster->most_accelerators().value_or(0), gpus) << gpu;
    EXPECT_GT(cluster->node.nic.bandwidth, BytesPerSecond()) << gpu;
    EXPECT_TRUE(std::any_of(filled_in.begin(), filled_in.end(), [](const std::string& line) {
      return line.rfind("fabric: ", 0) == 0;
    })) << gpu;
  }
}

}  // namespace
}  // namespace shardwright::sim
