// Networks between nodes as sources write them.
#include "sim/validation/network_text.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace shardwright::sim
