#include "calibration/traces/memory_snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/printable_text.hpp"

namespace shardwright::calibration {
namespace {

using Address = std::uint64_t;

// No device has more memory, and none has a larger address space.
constexpr std::int64_t kMostSnapshotBytes = std::int64_t{1} << 46U;
constexpr std::int64_t kMostAddress = std::int64_t{1} << 57U;
constexpr std::size_t kMostSites = 1000;
constexpr std::size_t kMostFrames = 64;

enum class MemoryAction : std::uint8_t { Allocate, Free, Reserve, Return, OutOfMemory };

struct MemoryEvent {
  MemoryAction action = MemoryAction::Allocate;
  Address address = 0;
  std::int64_t bytes = 0;
  // None where the program's place was not recorded.
  std::optional<PickleValue> frames;
};

struct Allocation {
  std::int64_t bytes = 0;
  std::optional<PickleValue> frames;
};

// The allocator hands out multiples of this.
std::int64_t rounded(std::int64_t bytes) {
  constexpr std::int64_t kUnit = 512;
  return std::max<std::int64_t>(1, (bytes + kUnit - 1) / kUnit) * kUnit;
}

std::optional<std::int64_t> bytes_at(const PickleValue& value, std::string_view key) {
  const auto found = value.find(key);
  const auto bytes = found ? found->integer() : std::nullopt;
  return bytes && *bytes >= 0 && *bytes <= kMostSnapshotBytes ? bytes : std::nullopt;
}

std::optional<Address> address_at(const PickleValue& value, std::string_view key) {
  const auto found = value.find(key);
  const auto address = found ? found->integer() : std::nullopt;
  if (!address || *address < 0 || *address > kMostAddress) return std::nullopt;
  return static_cast<Address>(*address);
}

// Pieces of a device's address space.
class AddressRanges {
 public:
  void add(Address begin, Address end) {
    if (begin >= end) return;
    remove(begin, end);
    ends_[begin] = end;
    bytes_ += static_cast<std::int64_t>(end - begin);
  }

  void remove(Address begin, Address end) {
    if (begin >= end) return;
    auto piece = ends_.upper_bound(begin);
    if (piece != ends_.begin()) --piece;
    while (piece != ends_.end() && piece->first < end) {
      const auto [first, last] = *piece;
      if (last <= begin) {
        ++piece;
        continue;
      }
      piece = ends_.erase(piece);
      bytes_ -= static_cast<std::int64_t>(std::min(last, end) - std::max(first, begin));
      if (first < begin) ends_[first] = begin;
      if (last > end) ends_[end] = last;
    }
  }

  std::int64_t bytes() const { return bytes_; }
  // The end of each, by its begin.
  const std::map<Address, Address>& ends() const { return ends_; }

 private:
  std::map<Address, Address> ends_;
  std::int64_t bytes_ = 0;
};

// A device's memory at one moment.
struct MemoryState {
  std::unordered_map<Address, Allocation> live;
  // In bytes. Sums of forged sizes do not fit an integer.
  double allocated = 0.0;
  AddressRanges reserved;

  void allocate(Address address, const Allocation& allocation) {
    free(address);
    allocated += static_cast<double>(rounded(allocation.bytes));
    live.insert_or_assign(address, allocation);
  }

  void free(Address address) {
    const auto known = live.find(address);
    if (known == live.end()) return;
    allocated -= static_cast<double>(rounded(known->second.bytes));
    live.erase(known);
  }

  void apply(const MemoryEvent& event) {
    const Address end = event.address + static_cast<Address>(event.bytes);
    switch (event.action) {
      case MemoryAction::Allocate:
        return allocate(event.address, {event.bytes, event.frames});
      case MemoryAction::Free:
        return free(event.address);
      case MemoryAction::Reserve:
        return reserved.add(event.address, end);
      case MemoryAction::Return:
        return reserved.remove(event.address, end);
      case MemoryAction::OutOfMemory:
        return;
    }
  }

  void undo(const MemoryEvent& event) {
    const Address end = event.address + static_cast<Address>(event.bytes);
    switch (event.action) {
      case MemoryAction::Allocate:
        return free(event.address);
      // Nobody knows where it was allocated.
      case MemoryAction::Free:
        return allocate(event.address, {event.bytes, std::nullopt});
      case MemoryAction::Reserve:
        return reserved.remove(event.address, end);
      case MemoryAction::Return:
        return reserved.add(event.address, end);
      case MemoryAction::OutOfMemory:
        return;
    }
  }
};

std::optional<MemoryAction> action_of(const PickleValue& event) {
  static const std::map<std::string_view, MemoryAction> kActions = {
      {"alloc", MemoryAction::Allocate},        {"free_requested", MemoryAction::Free},
      {"segment_alloc", MemoryAction::Reserve}, {"segment_map", MemoryAction::Reserve},
      {"segment_free", MemoryAction::Return},   {"segment_unmap", MemoryAction::Return},
      {"oom", MemoryAction::OutOfMemory},
  };
  const auto text = event.find("action");
  const auto known = kActions.find(text ? text->text().value_or("") : "");
  return known == kActions.end() ? std::nullopt : std::optional(known->second);
}

// The events of a device that change its memory.
std::vector<MemoryEvent> events_of(const PickleValue& trace, std::int64_t& unusable) {
  std::vector<MemoryEvent> events;
  events.reserve(trace.size());
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const PickleValue each = trace.item(i);
    const auto action = action_of(each);
    if (!action) continue;
    const auto address = address_at(each, "addr");
    const auto bytes = bytes_at(each, "size");
    if (*action == MemoryAction::OutOfMemory)
      events.push_back({*action, 0, 0, std::nullopt});
    else if (address && bytes)
      events.push_back({*action, *address, *bytes, each.find("frames")});
    else
      ++unusable;
  }
  return events;
}

// The size and the place of a block: of snapshots before PyTorch 2.1 in the last entry of its
// history.
Allocation allocation_of(const PickleValue& block, std::int64_t size) {
  const auto history = block.find("history");
  if (history && history->size() > 0)
    return {bytes_at(history->item(0), "real_size").value_or(size),
            history->item(0).find("frames")};
  return {bytes_at(block, "requested_size").value_or(size), block.find("frames")};
}

void add_segment(const PickleValue& segment, const std::string& source, std::size_t index,
                 MemoryState& state) {
  const auto begin = address_at(segment, "address");
  const auto total = bytes_at(segment, "total_size");
  if (!begin || !total)
    throw InputError(source, {{fmt::format("/segments/{}", index),
                               segment.kind() == PickleKind::Dict
                                   ? "no address or no total_size of a device's memory"
                                   : "a value that is no dictionary",
                               "a segment of a memory snapshot of PyTorch"}});
  const auto blocks = segment.find("blocks");
  Address at = *begin;
  state.reserved.add(at, at + static_cast<Address>(*total));
  for (std::size_t i = 0; blocks && i < blocks->size(); ++i) {
    const PickleValue block = blocks->item(i);
    const std::int64_t size = bytes_at(block, "size").value_or(0);
    const auto how = block.find("state");
    // Older snapshots leave the address out: blocks follow each other.
    at = address_at(block, "address").value_or(at);
    if (how && how->text() == "active_allocated") state.allocate(at, allocation_of(block, size));
    at += static_cast<Address>(size);
  }
}

// The end of a path that tells files apart: what follows PyTorch's folder with its name, else the
// last folder.
std::string_view end_of_path(std::string_view path) {
  const std::size_t torch = path.rfind("/torch/");
  if (torch != std::string_view::npos) return path.substr(torch + 1);
  std::size_t slash = path.rfind('/');
  if (slash != std::string_view::npos && slash > 0) slash = path.rfind('/', slash - 1);
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// "forward (gpt/model.py:88)"; empty where the frame has no name.
std::string frame_text(const PickleValue& frame) {
  constexpr std::size_t kLongestName = 200;
  const auto name = frame.find("name"), file = frame.find("filename"), line = frame.find("line");
  const std::string_view function = name ? name->text().value_or("") : "";
  const std::string_view path = end_of_path(file ? file->text().value_or("") : "");
  if (function.empty()) return "";
  return printable(fmt::format("{} ({}:{})", function.substr(0, kLongestName),
                               path.substr(0, kLongestName),
                               line ? line->integer().value_or(0) : 0));
}

// Calls in Python. Those of C++, where they were recorded too, stand only for places without
// Python.
std::vector<std::string> frames_of(const std::optional<PickleValue>& recorded) {
  std::vector<std::string> python, all;
  for (std::size_t i = 0; recorded && i < recorded->size() && python.size() < kMostFrames; ++i) {
    const auto file = recorded->item(i).find("filename");
    const std::string text = frame_text(recorded->item(i));
    if (text.empty()) continue;
    if (file && file->text().value_or("").ends_with(".py")) python.push_back(text);
    if (all.size() < kMostFrames) all.push_back(text);
  }
  return python.empty() ? all : python;
}

std::vector<AllocationSite> sites_of(const MemoryState& state) {
  std::map<std::vector<std::string>, AllocationSite> sites;
  // Allocations of the same place share their frames.
  std::unordered_map<std::uint32_t, AllocationSite*> known;
  for (const auto& [address, allocation] : state.live) {
    AllocationSite*& site = known[allocation.frames ? allocation.frames->identity() : ~0U];
    if (site == nullptr) {
      std::vector<std::string> frames = frames_of(allocation.frames);
      site = &sites[frames];
      site->frames = std::move(frames);
    }
    site->bytes += Bytes(static_cast<double>(rounded(allocation.bytes)));
    ++site->allocations;
  }
  std::vector<AllocationSite> ordered;
  for (auto& [frames, site] : sites) ordered.push_back(std::move(site));
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return ordered;
}

// What is free within the pieces that hold a tensor.
std::int64_t split_bytes(const MemoryState& state) {
  std::vector<std::pair<Address, Address>> tensors;
  for (const auto& [address, allocation] : state.live)
    tensors.emplace_back(address, address + static_cast<Address>(rounded(allocation.bytes)));
  std::sort(tensors.begin(), tensors.end());
  // Tensors of a sound snapshot do not overlap.
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    tensors[i].first = std::max(tensors[i].first, tensors[i - 1].second);
    tensors[i].second = std::max(tensors[i].first, tensors[i].second);
  }
  std::int64_t free = 0;
  auto tensor = tensors.begin();
  for (const auto& [begin, end] : state.reserved.ends()) {
    std::int64_t filled = 0;
    while (tensor != tensors.end() && tensor->second <= begin) ++tensor;
    // A tensor may go on in the next piece.
    for (auto each = tensor; each != tensors.end() && each->first < end; ++each) {
      filled +=
          static_cast<std::int64_t>(std::min(end, each->second) - std::max(begin, each->first));
      if (each->second <= end) tensor = each + 1;
    }
    if (filled > 0)
      free += std::max<std::int64_t>(0, static_cast<std::int64_t>(end - begin) - filled);
  }
  return free;
}

Bytes bytes_of_number(std::int64_t number) {
  return Bytes(static_cast<double>(number));
}

DeviceMemory replayed(std::int64_t device, MemoryState state,
                      const std::vector<MemoryEvent>& events) {
  DeviceMemory memory;
  memory.device = device;
  memory.events = static_cast<std::int64_t>(events.size());
  memory.allocated_at_end = Bytes(state.allocated);
  memory.reserved_at_end = bytes_of_number(state.reserved.bytes());
  for (auto event = events.rbegin(); event != events.rend(); ++event) state.undo(*event);
  // The number of events before the peak. A second walk stops there, so that no state is copied.
  std::size_t before_peak = 0;
  double highest = state.allocated;
  std::int64_t most_reserved = state.reserved.bytes();
  const MemoryState start = state;
  for (std::size_t i = 0; i < events.size(); ++i) {
    state.apply(events[i]);
    if (events[i].action == MemoryAction::OutOfMemory) ++memory.out_of_memory;
    most_reserved = std::max(most_reserved, state.reserved.bytes());
    if (state.allocated <= highest) continue;
    highest = state.allocated;
    before_peak = i + 1;
  }
  state = start;
  for (std::size_t i = 0; i < before_peak; ++i) state.apply(events[i]);
  memory.peak_allocated = Bytes(highest);
  memory.peak_reserved = bytes_of_number(most_reserved);
  memory.reserved_at_peak = bytes_of_number(state.reserved.bytes());
  memory.split_at_peak = bytes_of_number(split_bytes(state));
  memory.sites = sites_of(state);
  return memory;
}

}  // namespace

double DeviceMemory::fragmentation() const {
  return reserved_at_peak > Bytes(0.0) ? split_at_peak / reserved_at_peak : 0.0;
}

MemorySnapshot memory_snapshot(const PickleValue& document, const std::string& source) {
  const auto segments = document.find("segments"), traces = document.find("device_traces");
  if (!segments || segments->kind() != PickleKind::List)
    throw InputError(source, {{"", "a pickle without \"args\" and without \"segments\"",
                               "a checkpoint of Megatron-LM, or a memory snapshot of PyTorch"}});
  std::map<std::int64_t, MemoryState> states;
  for (std::size_t i = 0; i < segments->size(); ++i) {
    const auto device = segments->item(i).find("device");
    add_segment(segments->item(i), source, i, states[device ? device->integer().value_or(0) : 0]);
  }
  MemorySnapshot snapshot;
  snapshot.file = source;
  for (std::size_t i = 0; traces && i < traces->size(); ++i)
    if (traces->item(i).size() > 0) states[static_cast<std::int64_t>(i)];
  for (auto& [device, state] : states) {
    std::vector<MemoryEvent> events;
    if (traces && device >= 0 && device < static_cast<std::int64_t>(traces->size()))
      events = events_of(traces->item(static_cast<std::size_t>(device)), snapshot.unusable_events);
    snapshot.devices.push_back(replayed(device, std::move(state), events));
  }
  return snapshot;
}

nlohmann::ordered_json to_json(const MemorySnapshot& snapshot) {
  auto devices = nlohmann::ordered_json::array();
  for (const DeviceMemory& device : snapshot.devices) {
    auto sites = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < std::min(kMostSites, device.sites.size()); ++i)
      sites.push_back({{"bytes", device.sites[i].bytes.value()},
                       {"allocations", device.sites[i].allocations},
                       {"frames", device.sites[i].frames}});
    devices.push_back({{"device", device.device},
                       {"events", device.events},
                       {"peak_allocated_bytes", device.peak_allocated.value()},
                       {"peak_reserved_bytes", device.peak_reserved.value()},
                       {"reserved_at_peak_bytes", device.reserved_at_peak.value()},
                       {"split_at_peak_bytes", device.split_at_peak.value()},
                       {"fragmentation_ratio", device.fragmentation()},
                       {"allocated_at_end_bytes", device.allocated_at_end.value()},
                       {"reserved_at_end_bytes", device.reserved_at_end.value()},
                       {"out_of_memory", device.out_of_memory},
                       {"sites", std::move(sites)}});
  }
  return {{"path", printable(snapshot.file)},
          {"unusable_events", snapshot.unusable_events},
          {"devices", std::move(devices)}};
}

}  // namespace shardwright::calibration
