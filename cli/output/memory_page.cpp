#include "cli/output/memory_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/output/figures.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/quantity_text.hpp"
#include "planner/figure.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::cli {
namespace {

using calibration::AllocationSite;
using calibration::DeviceMemory;

constexpr std::size_t kMostShownSites = 12;

// The innermost call, and the first one outside of PyTorch that led to it.
std::string place_text(const AllocationSite& site) {
  if (site.frames.empty()) return "(not recorded)";
  const auto is_library = [](const std::string& frame) {
    return frame.find("(torch/") != std::string::npos;
  };
  const auto own = std::find_if_not(site.frames.begin(), site.frames.end(), is_library);
  if (own == site.frames.begin() || own == site.frames.end()) return site.frames.front();
  return site.frames.front() + " from " + *own;
}

Table levels_table(const std::vector<DeviceMemory>& devices) {
  Table table({{"device"},
               {"events", kNumber},
               {"peak allocated", kNumber, "GB"},
               {"peak reserved", kNumber, "GB"},
               {"split", kNumber, "%"},
               {"out of memory", kNumber}});
  for (const DeviceMemory& each : devices)
    table.add_row({fmt::format("{}", each.device), format_count(each.events),
                   format_gigabytes(each.peak_allocated, 2),
                   format_gigabytes(each.peak_reserved, 2), format_percent(each.fragmentation()),
                   format_count(each.out_of_memory)});
  return table;
}

void add_sites(Page& page, const DeviceMemory& device) {
  page.heading(fmt::format("Largest allocations at the peak of device {}", device.device));
  Table table({{"size", kNumber, "GB"},
               {"share", kNumber, "%"},
               {"count", kNumber},
               {"allocated by", ColumnKind::Prose}});
  std::vector<Bar> bars;
  for (std::size_t i = 0; i < std::min(kMostShownSites, device.sites.size()); ++i) {
    const AllocationSite& site = device.sites[i];
    table.add_row({format_gigabytes(site.bytes, 3),
                   format_percent(site.bytes / device.peak_allocated),
                   format_count(site.allocations), place_text(site)});
    bars.push_back({place_text(site), site.bytes.value(), format_bytes(site.bytes)});
  }
  page.table(table);
  page.figure("What is allocated at the peak, by the place that allocated it.", bars_figure(bars));
  if (device.sites.size() > kMostShownSites)
    page.paragraph(
        fmt::format("These are the largest {} of {} places; --json has them with all "
                    "their calls.",
                    kMostShownSites, format_count(static_cast<std::int64_t>(device.sites.size()))));
}

void add_planned(Page& page, const DeviceMemory& fullest, const sim::MemoryPeak& planned) {
  page.heading("Beside the plan");
  Table table({{""},
               {"predicted", kNumber, "GB"},
               {"recorded", kNumber, "GB"},
               {"difference", kNumber, "%"}});
  const auto add = [&](const char* name, Bytes predicted, Bytes recorded) {
    table.add_row({name, format_gigabytes(predicted, 2), format_gigabytes(recorded, 2),
                   recorded > Bytes() ? format_signed_percent(predicted / recorded - 1.0) : ""});
  };
  add("allocated", planned.allocated(), fullest.peak_allocated);
  add("reserved", planned.reserved(), fullest.peak_reserved);
  page.table(table);
  Table parts({{"predicted at the peak", ColumnKind::Prose}, {"size", kNumber, "GB"}});
  for (const MemoryCategory category : enumerators<MemoryCategory>())
    if (planned.of(category) > Bytes())
      parts.add_row({planner::memory_text(category), format_gigabytes(planned.of(category), 2)});
  page.table(parts);
  page.paragraph(
      "The prediction is of the plan's fullest stage, the recording of the fullest device. What "
      "lies "
      "outside of PyTorch's allocator, the context and buffers of NCCL, is in neither row.");
}

}  // namespace

void add_memory_snapshot(Page& page, const calibration::MemorySnapshot& snapshot,
                         const std::optional<sim::MemoryPeak>& planned) {
  page.heading("Memory of " + printable(std::filesystem::path(snapshot.file).filename().string()));
  if (snapshot.devices.empty())
    return page.paragraph("Nothing was allocated on any device, and no history was recorded.");
  page.table(levels_table(snapshot.devices));
  const auto fullest = std::max_element(
      snapshot.devices.begin(), snapshot.devices.end(),
      [](const auto& a, const auto& b) { return a.peak_allocated < b.peak_allocated; });
  if (fullest->events == 0)
    page.paragraph(
        "The snapshot has no history of the device, so that its peak is the state when the "
        "snapshot was "
        "taken: torch.cuda.memory._record_memory_history() records one.");
  page.paragraph(fmt::format(
      "At the peak {} of {} reserved are allocated. {} are free within segments that hold tensors.",
      format_bytes(fullest->peak_allocated), format_bytes(fullest->reserved_at_peak),
      format_bytes(fullest->split_at_peak)));
  if (snapshot.unusable_events > 0)
    page.warning(fmt::format("Shardwright leaves out {} without an address or a size.",
                             format_plural(snapshot.unusable_events, "event")));
  if (!fullest->sites.empty()) add_sites(page, *fullest);
  if (planned) add_planned(page, *fullest, *planned);
}

nlohmann::ordered_json planned_memory_json(const sim::MemoryPeak& planned) {
  return {{"predicted_allocated_bytes", planned.allocated().value()},
          {"predicted_reserved_bytes", planned.reserved().value()},
          {"predicted", sim::memory_json(planned)}};
}

}  // namespace shardwright::cli
