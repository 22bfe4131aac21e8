// Memory snapshots: the levels that a random allocator went through come back from the part of its
// history that is left, and from the state at its end.
#include "calibration/traces/memory_snapshot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "tests/pickle_writer.hpp"
#include "tests/thrown.hpp"

namespace shardwright::calibration {
namespace {

using nlohmann::json;
using testing::ElementsAre;

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kBase = 0x7f00'0000'0000;

MemorySnapshot snapshot_of(const json& document) {
  const PickleDocument pickle = read_pickle(pickled(document), "snapshot.pickle");
  return memory_snapshot(pickle.root, "snapshot.pickle");
}

json frame(const std::string& name, const std::string& file, int line) {
  return {{"name", name}, {"filename", file}, {"line", line}};
}

json frames_of_call(const std::string& name) {
  return json::array({frame(name, "/home/a/gpt/" + name + ".py", 7)});
}

// An allocator that has a segment of 64 MiB for every tensor, or expands one by 2 MiB.
class RandomAllocator {
 public:
  // What holds after each event, in bytes.
  std::vector<std::int64_t> allocated = {0}, reserved = {0};
  json history = json::array();

  void step(int choice, std::int64_t size) {
    if (choice == 0 && !live_.empty()) {
      const auto freed = std::next(live_.begin(), size % static_cast<std::int64_t>(live_.size()));
      add("free_requested", freed->first, freed->second.bytes, 0, -rounded_bytes(freed->second));
      add("free_completed", freed->first, freed->second.bytes, 0, 0);
      live_.erase(freed);
    } else if (choice == 1 && !segments_.empty()) {
      const auto returned = std::find_if(segments_.begin(), segments_.end(),
                                         [&](const auto& each) { return !live_.contains(each); });
      if (returned == segments_.end()) return;
      add("segment_free", *returned, 64 * kMiB, -64 * kMiB, 0);
      segments_.erase(returned);
    } else {
      const std::int64_t address = kBase + 64 * kMiB * next_++;
      add("segment_alloc", address, 64 * kMiB, 64 * kMiB, 0);
      segments_.push_back(address);
      live_[address] = {size, choice % 3};
      add("alloc", address, size, 0, rounded_bytes(live_[address]));
      history.back()["frames"] = frames_of_call(kNames[choice % 3]);
    }
  }

  // The last events, and the state that all of them left.
  json snapshot(std::size_t events) const {
    json segments = json::array();
    for (const std::int64_t address : segments_) {
      json block = {{"size", 64 * kMiB}, {"state", "inactive"}, {"requested_size", 0}};
      if (const auto tensor = live_.find(address); tensor != live_.end())
        block = {{"size", rounded_bytes(tensor->second)},
                 {"state", "active_allocated"},
                 {"requested_size", tensor->second.bytes},
                 {"frames", frames_of_call(kNames[tensor->second.site])}};
      segments.push_back({{"device", 1},
                          {"address", address},
                          {"total_size", 64 * kMiB},
                          {"blocks", json::array({block})}});
    }
    const json kept(
        std::vector<json>(history.end() - static_cast<std::ptrdiff_t>(events), history.end()));
    return {{"segments", segments}, {"device_traces", json::array({json::array(), kept})}};
  }

 private:
  struct Tensor {
    std::int64_t bytes = 0;
    int site = 0;
  };
  static constexpr const char* kNames[] = {"attention", "mlp", "head"};

  static std::int64_t rounded_bytes(const Tensor& tensor) {
    return (tensor.bytes + 511) / 512 * 512;
  }

  void add(const char* action, std::int64_t address, std::int64_t size, std::int64_t more_reserved,
           std::int64_t more_allocated) {
    history.push_back({{"action", action}, {"addr", address}, {"size", size}, {"stream", 0}});
    reserved.push_back(reserved.back() + more_reserved);
    allocated.push_back(allocated.back() + more_allocated);
  }

  std::map<std::int64_t, Tensor> live_;
  std::vector<std::int64_t> segments_;
  std::int64_t next_ = 0;
};

RC_GTEST_PROP(MemorySnapshot, LevelsComeBackFromTheEnd, ()) {
  RandomAllocator allocator;
  const int steps = *rc::gen::inRange(1, 60);
  for (int i = 0; i < steps; ++i)
    allocator.step(*rc::gen::inRange(0, 5), *rc::gen::inRange<std::int64_t>(1, 64 * kMiB));
  const auto kept = *rc::gen::inRange<std::size_t>(1, allocator.history.size() + 1);
  const MemorySnapshot snapshot = snapshot_of(allocator.snapshot(kept));
  RC_ASSERT(snapshot.devices.size() == 1U);
  const DeviceMemory& device = snapshot.devices.front();
  RC_ASSERT(device.device == 1);
  const auto offset = static_cast<std::ptrdiff_t>(allocator.allocated.size() - kept - 1);
  const auto highest = [&](const std::vector<std::int64_t>& levels) {
    return std::max_element(levels.begin() + offset, levels.end());
  };
  const auto peak = highest(allocator.allocated);
  RC_ASSERT(device.peak_allocated.value() == static_cast<double>(*peak));
  RC_ASSERT(device.peak_reserved.value() == static_cast<double>(*highest(allocator.reserved)));
  const auto at_peak =
      allocator.reserved[static_cast<std::size_t>(peak - allocator.allocated.begin())];
  RC_ASSERT(device.reserved_at_peak.value() == static_cast<double>(at_peak));
  double sites = 0.0;
  for (const AllocationSite& site : device.sites) sites += site.bytes.value();
  RC_ASSERT(sites == device.peak_allocated.value());
  RC_ASSERT(device.split_at_peak <= device.reserved_at_peak - device.peak_allocated);
}

json event(const char* action, std::int64_t address, std::int64_t size) {
  return {{"action", action}, {"addr", kBase + address * kMiB}, {"size", size * kMiB}};
}

json segment(std::int64_t address, std::int64_t size, const json& blocks) {
  return {{"device", 0},
          {"address", kBase + address * kMiB},
          {"total_size", size * kMiB},
          {"blocks", blocks}};
}

json block(std::int64_t size, const char* state) {
  return {{"size", size * kMiB}, {"requested_size", size * kMiB}, {"state", state}};
}

double mebibytes(Bytes bytes) {
  return bytes.value() / static_cast<double>(kMiB);
}

// One segment holds a tensor of 30 of its 100 MiB, one is empty: 70 MiB are split, 50 MiB are only
// kept.
TEST(MemorySnapshot, FreeMemoryBesideTensorsIsSplit) {
  const json document = {{"segments",
                          {segment(0, 100, {block(30, "active_allocated"), block(70, "inactive")}),
                           segment(500, 50, {block(50, "inactive")})}},
                         {"device_traces", {json::array()}}};
  const DeviceMemory device = snapshot_of(document).devices.at(0);
  EXPECT_EQ(device.events, 0);
  EXPECT_EQ(mebibytes(device.peak_allocated), 30.0);
  EXPECT_EQ(mebibytes(device.reserved_at_peak), 150.0);
  EXPECT_EQ(mebibytes(device.split_at_peak), 70.0);
  EXPECT_NEAR(device.fragmentation(), 70.0 / 150.0, 1e-12);
}

// An expandable segment grows by pieces, over which a tensor reaches; the end of the recording has
// it as one.
TEST(MemorySnapshot, ExpandableSegmentsGrowByPieces) {
  const json trace = {event("segment_map", 20, 20),
                      event("alloc", 0, 30),
                      event("free_requested", 0, 30),
                      event("segment_unmap", 20, 20),
                      {{"action", "oom"}, {"size", 1}, {"device_free", 0}},
                      {{"action", "alloc"}, {"addr", "nowhere"}, {"size", 1}}};
  const json document = {{"segments", {segment(0, 20, {block(20, "inactive")})}},
                         {"device_traces", {trace}}};
  const MemorySnapshot snapshot = snapshot_of(document);
  const DeviceMemory& device = snapshot.devices.at(0);
  EXPECT_EQ(mebibytes(device.peak_allocated), 30.0);
  EXPECT_EQ(mebibytes(device.peak_reserved), 40.0);
  EXPECT_EQ(mebibytes(device.reserved_at_end), 20.0);
  EXPECT_EQ(mebibytes(device.split_at_peak), 10.0);
  EXPECT_EQ(device.out_of_memory, 1);
  EXPECT_EQ(snapshot.unusable_events, 1);
}

// Calls of C++ count only where there are none of Python; paths of PyTorch begin with its name.
TEST(MemorySnapshot, PlacesAreCallsInPython) {
  const json frames = json::array({frame("c10::malloc", "/src/c10/cuda.cpp", 1),
                                   frame("linear", "/opt/lib/torch/nn/functional.py", 9),
                                   frame("forward", "/home/a/gpt/forward.py", 7)});
  json first = block(8, "active_allocated"), second = block(4, "active_allocated");
  first["frames"] = frames;
  second["frames"] = json::array({frames.front()});
  const auto sites =
      snapshot_of({{"segments", {segment(0, 12, {first, second})}}}).devices.at(0).sites;
  ASSERT_EQ(sites.size(), 2U);
  EXPECT_THAT(sites[0].frames,
              ElementsAre("linear (torch/nn/functional.py:9)", "forward (gpt/forward.py:7)"));
  EXPECT_THAT(sites[1].frames, ElementsAre("c10::malloc (c10/cuda.cpp:1)"));
  EXPECT_EQ(to_json(snapshot_of({{"segments", {segment(0, 12, {first, second})}}}))
                .at("devices")
                .at(0)
                .at("sites")
                .at(0)
                .at("bytes"),
            8 * kMiB);
}

TEST(MemorySnapshot, OtherPicklesAreRefused) {
  for (const json& document : {json(7), json::object(), json{{"segments", 1}}})
    EXPECT_THROW(snapshot_of(document), InputError) << document;
  const json sound = {{"device", 0}, {"address", 512}, {"total_size", 512}};
  json without_size = sound, before_memory = sound;
  without_size.erase("total_size");
  before_memory["address"] = -1;
  const std::pair<json, const char*> refused[] = {
      {1, "no dictionary"}, {without_size, "total_size"}, {before_memory, "no address"}};
  for (const auto& [segment, found] : refused)
    EXPECT_THAT(thrown_by([&] {
                  snapshot_of({{"segments", json::array({sound, segment})}});
                }),
                testing::AllOf(testing::HasSubstr("/segments/1"), testing::HasSubstr(found)));
}

}  // namespace
}  // namespace shardwright::calibration
