// Networks between nodes as sources write them.
#include "sim/validation/network_text.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

namespace shardwright::sim {
namespace {

TEST(NetworkText, ReadsNetworksAsSourcesWriteThem) {
  const auto gigabytes_of = [](const std::string& text) {
    return read_network(text, 8).per_node / gigabytes_per_second(1.0);
  };
  EXPECT_DOUBLE_EQ(gigabytes_of("8x400 Gb/s NDR InfiniBand"), 400.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("4x100 Gb/s Omni-Path per node"), 50.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("1600 Gb/s per node RoCE"), 200.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("400 Gb/s per GPU RDMA"), 400.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("8x400 GbE (RoCE, Cisco)"), 400.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("RoCE RDMA (speed not stated)"), 0.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("3.2 Tbps EFA"), 400.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("8x50 GB/s InfiniBand"), 400.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("400 Gb/s per GPU (8x50 GB/s)"), 400.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("8x12.5GB/s"), 100.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("8x400Gbit"), 400.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("8x100GBE"), 100.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("8x HDR200"), 200.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("2x HDR100"), 25.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("3,200 Gbps EFA"), 400.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("1,600 Gb/s"), 200.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("12,800 Gb/s InfiniBand"), 1600.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("8x400 Gb/s, 200 Gb/s storage"), 400.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("1e3 Gb/s"), 125.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("2x1.6 Tb/s"), 400.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("2x100GbE RoCE per GPU"), 200.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("1x NDR per GPU"), 400.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("400 Gb/s InfiniBand per GPU"), 400.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("8x400 Gb/s (400 Gb/s per GPU)"), 400.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("InfiniBand - 800 Gb/s per node"), 100.0);
  EXPECT_EQ(read_network("8x HDR200", 8).protocol, FabricProtocol::InfiniBand);
  EXPECT_DOUBLE_EQ(gigabytes_of("400 Gb/s InfiniBand"), 0.0);  // of a node or of each GPU?
  EXPECT_EQ(read_network("8x400 Gb/s NDR InfiniBand", 8).protocol, FabricProtocol::InfiniBand);
}

// A single figure is one port's, or all that a server has where no port is so slow.
TEST(NetworkText, ReadsSingleFiguresAsPortsOrNodes) {
  const auto read = [](const std::string& text) {
    const NetworkText network = read_network(text, 8);
    return std::pair(network.per_node / gigabytes_per_second(1.0),
                     network.per_port / gigabytes_per_second(1.0));
  };
  EXPECT_EQ(read("10 GbE"), std::pair(1.25, 0.0));
  EXPECT_EQ(read("100 Gb/s Ethernet"), std::pair(12.5, 0.0));
  EXPECT_EQ(read("EFA 400 Gbps"), std::pair(50.0, 0.0));
  EXPECT_EQ(read("400 Gb/s InfiniBand"), std::pair(0.0, 50.0));
  EXPECT_EQ(read("400Gbit IB"), std::pair(0.0, 50.0));
  EXPECT_EQ(read("25 GB/s"), std::pair(0.0, 25.0));
  EXPECT_EQ(read("4x HDR InfiniBand"), std::pair(100.0, 0.0));
}

TEST(NetworkText, ReadsCountsAndUnitsInAnyOrder) {
  const auto read = [](const std::string& text) {
    const NetworkText network = read_network(text, 8);
    return std::pair(network.per_node / gigabytes_per_second(1.0),
                     network.per_port / gigabytes_per_second(1.0));
  };
  for (const char* text : {"4 HCA HDR 200Gb/s", "HDR InfiniBand 200 Gb/s x4 per node",
                           "4 NICs of 200 Gb/s", "4 × 200 Gb/s", "4 ports HDR 200 Gbps"})
    EXPECT_EQ(read(text), std::pair(100.0, 0.0)) << text;
  EXPECT_EQ(read("Ethernet 25G"), std::pair(3.125, 0.0));
  EXPECT_EQ(read("InfiniBand 3200Gb"), std::pair(400.0, 0.0));
  EXPECT_EQ(read("HDR100"), read("InfiniBand 100 Gb/s"));
  EXPECT_EQ(read("4x HDR100"), std::pair(50.0, 0.0));
  // Neither a memory nor a bus is a network.
  EXPECT_EQ(read("A100 80G"), std::pair(0.0, 0.0));
  EXPECT_EQ(read("8x400 Gb/s NDR, 1 NIC per GPU"), std::pair(400.0, 0.0));
}

struct Reading {
  const char* text;
  double per_node, per_port;  // gigabits per second of a node with 8 accelerators
};

void expect_readings(std::initializer_list<Reading> readings) {
  const BytesPerSecond gigabit = gigabytes_per_second(1.0 / 8.0);
  for (const Reading& each : readings) {
    const NetworkText network = read_network(each.text, 8);
    EXPECT_NEAR(network.per_node / gigabit, each.per_node, 1e-6) << each.text;
    EXPECT_NEAR(network.per_port / gigabit, each.per_port, 1e-6) << each.text;
  }
}

// Nodes have networks for storage, management and hosts beside the one of their accelerators.
TEST(NetworkText, OtherNetworksOfANodeAreLeftOut) {
  expect_readings({
      {"Storage: 2x 100 GbE; compute: 8x 400 Gb/s", 3200, 0},
      {"Storage: 2x 100 GbE and 1x 25 GbE; 8x400 NDR", 3200, 0},
      {"400 Gb/s per GPU; storage 2x100 GbE", 3200, 0},
      {"1x 100 GbE front-end; 3.2 Tb/s InfiniBand", 3200, 0},
      {"1x 100 GbE (storage), 8x 200 Gb/s HDR", 1600, 0},
      {"8x 200 Gb/s HDR (2x 100 GbE for storage)", 1600, 0},
      {"2x100 GbE, used for storage, and 8x400 Gb/s", 3200, 0},
      {"2x 25 GbE in-band management + 4x HDR", 800, 0},
      {"frontend 2x 200 Gb/s / backend 8x 400 Gb/s", 3200, 0},
      {"north-south 200 Gb/s, east-west 8x 400 Gb/s", 3200, 0},
      {"10 GbE, InfiniBand EDR", 100, 0},
      {"2x 100 GbE host network while GPUs have 8x200 Gb/s RoCE", 1600, 0},
      // Nothing but other networks says nothing of this one.
      {"storage 2x100 GbE", 0, 0},
      // What is shared, denied or named in passing leaves the figure as it is.
      {"8x400 Gb/s, shared by storage", 3200, 0},
      {"8x400 Gb/s (no separate storage network)", 3200, 0},
      {"8x400 GbE (RoCE, Cisco)", 3200, 0},
      {"25 GbE", 25, 0},
  });
  const auto left_out = read_network("400 Gb/s per GPU; storage 2x100 GbE", 8).left_out;
  ASSERT_EQ(left_out.size(), 1U);
  EXPECT_EQ(left_out.front(), "storage 2x100 GbE");
  EXPECT_EQ(read_network("storage: 8x NDR InfiniBand; 8x400 GbE RoCE", 8).protocol,
            FabricProtocol::RoCE);
  EXPECT_TRUE(read_network("8x400 Gb/s NDR InfiniBand", 8).left_out.empty());
}

// InfiniBand Trade Association's rates of four lanes; ports of products by their datasheets.
TEST(NetworkText, NamesOfPortsStandForTheirRates) {
  expect_readings({
      {"SDR InfiniBand", 10, 0},
      {"QDR", 40, 0},
      {"FDR", 56, 0},
      {"IB EDR", 100, 0},
      {"EDR", 100, 0},
      {"HDR InfiniBand", 0, 200},
      {"HDR100", 100, 0},
      {"InfiniBand NDR", 0, 400},
      {"NDR200", 0, 200},
      {"XDR", 0, 800},
      {"Omni-Path 100", 100, 0},
      {"Omni-Path", 100, 0},
      {"4x Omni-Path", 400, 0},
      {"InfiniBand 400", 0, 400},
      {"8x400 IB", 3200, 0},
      {"4x FDR", 224, 0},
      {"8x ConnectX-6 HDR", 1600, 0},
      {"8x ConnectX-6 (HDR100)", 800, 0},
      {"8x ConnectX-7", 3200, 0},
      {"8x CX-7 200 Gb/s", 1600, 0},
      {"4x ConnectX-5", 400, 0},
      {"8x ConnectX-8", 6400, 0},
      {"8x NDR (400 Gb/s each)", 3200, 0},
      {"8x NDR (3.2 Tb/s total)", 3200, 0},
      {"8 NDR ports", 3200, 0},
      {"InfiniBand 100 nodes", 0, 0},
  });
  for (const char* text : {"EDR", "FDR", "SDR", "IB", "Omni-Path 100"})
    EXPECT_EQ(read_network(text, 8).protocol, FabricProtocol::InfiniBand) << text;
  EXPECT_TRUE(read_network("IB EDR", 8).by_name);
  EXPECT_FALSE(read_network("8x400 Gb/s NDR InfiniBand", 8).by_name);
}

TEST(NetworkText, CountsAndOwnersStandInWords) {
  expect_readings({
      {"single 400 Gb/s NIC", 400, 0},
      {"one NDR HCA per node", 400, 0},
      {"one 200 Gb/s HCA per GPU", 1600, 0},
      {"dual-rail EDR", 200, 0},
      {"dual-port 100 GbE", 200, 0},
      {"quad 200 Gb/s HDR", 800, 0},
      {"400 Gb/s (total per node)", 400, 0},
      {"400 Gb/s InfiniBand in total", 400, 0},
      {"total bandwidth 1600 Gb/s", 1600, 0},
      {"800G per node", 800, 0},
      {"400G per GPU", 3200, 0},
      {"per node: 800 Gb/s", 800, 0},
      {"each GPU has 200 Gb/s RoCE", 1600, 0},
      {"400 Gb/s per 2 GPUs", 1600, 0},
      {"100 Gb/s per pair of GPUs", 400, 0},
      {"InfiniBand, 8 HDR HCAs, 1.6 Tb/s", 1600, 0},
      {"Infiniband HDR 200 (1 per 2 GPUs)", 800, 0},
      {"NDR, one NIC per two GPUs", 1600, 0},
      {"400 Gb/s, 1 NIC per node", 400, 0},
      {"200 Gb/s HDR (4 HCAs)", 800, 0},
      {"8x400 Gb/s, one per GPU", 3200, 0},
      {"8x400 Gb/s per GPU", 3200, 0},
      {"800 Gb/s per server", 800, 0},
  });
}

TEST(NetworkText, ReadsHowThinANetworkIsAboveItsLeaves) {
  struct Case {
    const char* text;
    std::optional<double> ratio;
  };
  for (const Case& each : std::initializer_list<Case>{
           {"8x400 Gb/s NDR, oversubscription 2:1", 2.0},
           {"8x400 Gb/s NDR (2:1 blocking)", 2.0},
           {"8x400 Gb/s NDR, 1:3 tapered fat tree", 3.0},
           {"8x400 Gb/s NDR, oversubscribed by 1.5:1", 1.5},
           {"8x400 Gb/s NDR, 7 to 1 oversubscribed", 7.0},
           {"2x oversubscribed, 8x400 Gb/s NDR", 2.0},
           {"8x400 Gb/s NDR, oversubscription factor 4", 4.0},
           {"8x400 Gb/s NDR, non-blocking", 1.0},
           {"8x400 Gb/s NDR, no oversubscription", 1.0},
           {"8x400 Gb/s NDR, oversubscribed", std::nullopt},
           {"8x400 Gb/s NDR, 0:1 blocking", std::nullopt},
           {"8x400 Gb/s NDR", std::nullopt},
       }) {
    const NetworkText network = read_network(each.text, 8);
    EXPECT_EQ(network.oversubscription, each.ratio) << each.text;
    EXPECT_EQ(network.per_node, gigabytes_per_second(400)) << each.text;
    const bool says = std::string(each.text) != "8x400 Gb/s NDR";
    EXPECT_EQ(network.left_out.size(), says && !each.ratio ? 1U : 0U) << each.text;
  }
}

}  // namespace
}  // namespace shardwright::sim
