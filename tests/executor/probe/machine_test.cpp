#include "executor/probe/machine.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/spec/profile_library.hpp"
#include "core/spec/stack_json.hpp"
#include "executor/probe/gpu_machine.hpp"
#include "tests/scratch_path.hpp"

namespace shardwright::executor {
namespace {

namespace fs = std::filesystem;

// A /sys tree like that of a GPU host: files as the kernel writes them.
class Sys {
 public:
  Sys() : root_(scratch_path("sys")) { fs::remove_all(root_); }

  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << '\n';
  }
  void hardware(const std::string& device, const std::string& slot) const {
    fs::create_directories(root_ / "devices" / slot);
    fs::create_directories(root_ / device);
    fs::create_directory_symlink(root_ / "devices" / slot, root_ / device / "device");
  }
  void infiniband(const std::string& name, const std::string& state,
                  const std::string& rate) const {
    hardware("class/infiniband/" + name, "pci-" + name);
    write("class/infiniband/" + name + "/ports/1/state", state);
    write("class/infiniband/" + name + "/ports/1/rate", rate);
  }
  void net(const std::string& name, const std::string& state, const std::string& speed) const {
    write("class/net/" + name + "/operstate", state);
    write("class/net/" + name + "/speed", speed);
  }

  const fs::path& root() const { return root_; }

 private:
  fs::path root_;
};

TEST(NetworkDevices, AreThoseOfHardwareThatIsUp) {
  const Sys sys;
  sys.infiniband("mlx5_0", "4: ACTIVE", "400 Gb/sec (4X NDR)");
  sys.infiniband("mlx5_1", "1: DOWN", "400 Gb/sec (4X NDR)");
  sys.net("eth0", "up", "100000");
  sys.hardware("class/net/eth0", "pci-eth0");
  sys.net("eth1", "down", "-1");
  sys.hardware("class/net/eth1", "pci-eth1");
  // The same card as mlx5_0.
  sys.net("ib0", "up", "400000");
  sys.hardware("class/net/ib0", "pci-mlx5_0");
  sys.net("lo", "unknown", "");
  // No hardware.
  sys.net("docker0", "up", "10000");
  const std::vector<NetworkDevice> devices = network_devices(sys.root());
  const std::vector<NetworkDevice> expected = {{"mlx5_0", BytesPerSecond(50e9), true},
                                               {"eth0", BytesPerSecond(12.5e9), false}};
  EXPECT_EQ(devices, expected);
  EXPECT_EQ(fastest_network(devices), BytesPerSecond(50e9));
  const nlohmann::ordered_json written = hardware_json({}, devices);
  EXPECT_EQ(written["network_devices"][0]["bytes_per_s"], 50e9);
  EXPECT_TRUE(written["gpus"].empty());
}

TEST(NetworkDevices, WithoutAStatedSpeedHaveNoBandwidth) {
  const Sys sys;
  // The speed in many virtual machines.
  sys.net("eth0", "up", "-1");
  sys.hardware("class/net/eth0", "virtio0");
  const std::vector<NetworkDevice> expected = {{"eth0", BytesPerSecond(0), false}};
  EXPECT_EQ(network_devices(sys.root()), expected);
  EXPECT_EQ(fastest_network(expected), BytesPerSecond(0));
  EXPECT_TRUE(network_devices(sys.root() / "nowhere").empty());
}

// Ensures that the profile has the same estimates in memory as when read from its file.
TEST(CpuMachine, EveryFigureOfItsStackNamesASource) {
  const StackSpec stack = *describe_machine(2, 1).stack;
  const nlohmann::json written = to_json(stack);
  EXPECT_EQ(read_stack(written, "stack.json").sources, stack.sources);
}

TEST(CpuMachine, KeepsTheSourcesOfTheShippedStack) {
  const StackSpec stack = *describe_machine(2, 1).stack, shipped = load_stack("shardwright");
  const nlohmann::json own = to_json(stack), other = to_json(shipped);
  ASSERT_FALSE(stack.sources.empty());
  for (const auto& [pointer, source] : stack.sources) {
    const nlohmann::json::json_pointer value(pointer + "/value");
    EXPECT_EQ(own[value] == other[value], source == shipped.sources.at(pointer)) << pointer;
  }
}

}  // namespace
}  // namespace shardwright::executor
