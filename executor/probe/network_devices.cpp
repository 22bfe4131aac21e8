#include "executor/probe/network_devices.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>

namespace shardwright::executor {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// Returns the number at the beginning of a text, or 0 if there is none or it is not positive.
double leading_number(const std::string& text) {
  double value = 0.0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() && value > 0.0 && value < 1e9 ? value : 0.0;
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

// Returns the target of the link `device`, the hardware; empty if there is none.
fs::path hardware_of(const fs::path& device) {
  std::error_code error;
  return fs::exists(device / "device", error) ? fs::canonical(device / "device", error)
                                              : fs::path();
}

// Adds the rates ("100 Gb/sec (4X EDR)") of the ports with the state "4: ACTIVE".
BytesPerSecond active_rate(const fs::path& device) {
  constexpr double kBytesPerGigabit = 1e9 / 8.0;
  double rate = 0.0;
  for (const fs::path& port : entries(device / "ports")) {
    if (first_line(port / "state").find("ACTIVE") == std::string::npos) continue;
    rate += leading_number(first_line(port / "rate")) * kBytesPerGigabit;
  }
  return BytesPerSecond(rate);
}

}  // namespace

std::vector<NetworkDevice> network_devices(const fs::path& sys) {
  constexpr double kBytesPerMegabit = 1e6 / 8.0;
  std::vector<NetworkDevice> devices;
  std::set<fs::path> with_rdma;
  for (const fs::path& device : entries(sys / "class" / "infiniband")) {
    const BytesPerSecond rate = active_rate(device);
    if (rate <= BytesPerSecond(0)) continue;
    devices.push_back({device.filename().string(), rate, true});
    with_rdma.insert(hardware_of(device));
  }
  for (const fs::path& device : entries(sys / "class" / "net")) {
    const fs::path hardware = hardware_of(device);
    const bool up = first_line(device / "operstate") == "up";
    if (hardware.empty() || !up || with_rdma.count(hardware) > 0) continue;
    devices.push_back(
        {device.filename().string(),
         BytesPerSecond(leading_number(first_line(device / "speed")) * kBytesPerMegabit), false});
  }
  return devices;
}

BytesPerSecond fastest_network(const std::vector<NetworkDevice>& devices) {
  BytesPerSecond fastest;
  for (const NetworkDevice& device : devices) fastest = std::max(fastest, device.bandwidth);
  return fastest;
}

}  // namespace shardwright::executor
