#include "cli/output/trace_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "calibration/traces/device_steps.hpp"
#include "calibration/traces/roofline.hpp"
#include "calibration/traces/trace_timeline.hpp"
#include "cli/output/collective_page.hpp"
#include "cli/output/figures.hpp"
#include "cli/output/trace_columns.hpp"
#include "core/base/distinct_names.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/quantity_text.hpp"

namespace shardwright::cli {
namespace {

using calibration::CollectiveReport;
using calibration::KernelCategory;
using calibration::KernelReport;
using calibration::TraceReport;

constexpr std::size_t kMostKernels = 12;
constexpr std::size_t kLongestKernelName = 28;
constexpr std::size_t kMostRanksNamed = 8;

// "Trace rank0.json: NVIDIA H100, rank 0 of 2"; of several "Traces of 2 files: NVIDIA H100, ranks
// 0, 1 of 2".
void add_title(Page& page, const std::vector<TraceReport>& reports,
               const std::vector<std::string>& names) {
  std::set<std::string> gpus;
  std::set<std::int64_t> ranks;
  for (const TraceReport& report : reports) {
    if (!report.gpu.empty()) gpus.insert(report.gpu);
    if (report.rank) ranks.insert(*report.rank);
  }
  std::vector<std::string> about(gpus.begin(), gpus.end());
  if (!ranks.empty()) {
    about.push_back(
        ranks.size() <= kMostRanksNamed
            ? fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "))
            : format_plural(static_cast<std::int64_t>(ranks.size()), "rank"));
    if (reports.front().world_size)
      about.back() += fmt::format(" of {}", *reports.front().world_size);
  }
  page.heading(fmt::format("{}{}{}",
                           reports.size() == 1 ? "Trace " + names.front()
                                               : fmt::format("Traces of {} files", reports.size()),
                           about.empty() ? "" : ": ", fmt::join(about, ", ")));
}

std::string rank_text(const TraceReport& report) {
  if (!report.rank) return "";
  return report.world_size ? fmt::format(" of rank {} of {}", *report.rank, *report.world_size)
                           : fmt::format(" of rank {}", *report.rank);
}

void add_identity(Page& page, const TraceReport& report, const std::string& name) {
  const std::string gpu = report.gpu.empty() ? "" : fmt::format(" on {}", printable(report.gpu));
  const std::string devices = report.devices > 1 ? fmt::format(", {} devices", report.devices) : "";
  page.paragraph(fmt::format("{}: {}{}{}{}.", printable(name),
                             format_plural(report.kernels, "kernel"), rank_text(report), gpu,
                             devices));
}

void say_what_lacks(Page& page, const TraceReport& report, const std::string& name) {
  if (report.unusable_events > 0)
    page.warning(fmt::format("Shardwright leaves out {} without a usable time on a device.",
                             format_plural(report.unusable_events, "event")));
  for (const std::string& gap : report.gaps)
    page.warning(fmt::format("{}: {}", printable(name), gap));
}

void add_step_time(Page& page, const TraceReport& report) {
  if (!report.step) {
    page.paragraph(
        "The trace marks no steps on a device: no kernel was launched in an annotation "
        "ProfilerStep#N.");
    return;
  }
  page.paragraph(
      report.timed_steps == 1
          ? fmt::format("The one whole step takes {} of the device, from its first activity on.",
                        format_time(*report.step))
          : fmt::format(
                "A step takes {}: the mean of {}, each from its first activity on the device "
                "to that of the next one. The first recorded step is left out because "
                "kernels that were queued before run in it.",
                format_time(*report.step), format_plural(report.timed_steps, "step")));
  if (report.pauses > 0)
    page.paragraph(
        fmt::format("{} between them, longer than {:g} steps, {} left out, too: an "
                    "evaluation, or a part of the run that was not recorded.",
                    format_plural(report.pauses, "pause"), calibration::kPause,
                    report.pauses == 1 ? "is" : "are"));
}

void add_time(Page& page, const TraceReport& report) {
  const calibration::BusyTimes& times = report.times;
  std::vector<Bar> bars;
  Table kernels(
      {{"sum of durations", ColumnKind::Prose}, {"time", kNumber, "ms"}, {"share", kNumber, "%"}});
  Seconds total;
  for (const Seconds each : report.by_category) total += each;
  auto order = enumerators<KernelCategory>();
  std::stable_sort(order.begin(), order.end(), [&](KernelCategory a, KernelCategory b) {
    return report.by_category[a] > report.by_category[b];
  });
  for (const KernelCategory category : order) {
    const Seconds time = report.by_category[category];
    if (time <= Seconds(0.0)) continue;
    const std::string share = share_text(time, total);
    kernels.add_row({title_of(category), milliseconds_text(time, total), share});
    bars.push_back(
        {title_of(category), time.value(), fmt::format("{}, {} %", format_time(time), share)});
  }
  if (report.optimizer > Seconds(0.0)) {
    kernels.add_row({"of these in the optimizer's step", milliseconds_text(report.optimizer, total),
                     share_text(report.optimizer, total)});
  }
  page.table(kernels);
  page.figure("Time by category", bars_figure(bars));
  Table window({{"from the first kernel to the last", ColumnKind::Prose},
                {"time", kNumber, "ms"},
                {"share", kNumber, "%"}});
  const auto add = [&](const char* name, Seconds time) {
    // Differences of equal sums are rounding.
    if (time > times.window * 1e-9)
      window.add_row({name, milliseconds_text(time, times.window), share_text(time, times.window)});
  };
  const Seconds idle = times.window - times.busy;
  add("computing", times.compute);
  add("exposed collectives: nothing computes", times.exposed_collective);
  add("copies and fills alone", times.busy - times.compute - times.exposed_collective);
  add("idle: the host had not launched the next kernel", times.host_bound_gaps);
  add("idle for other reasons", idle - times.host_bound_gaps);
  add("in all", times.window);
  page.table(window);
}

void add_kernels(Page& page, const std::vector<KernelReport>& kernels, Seconds total) {
  if (kernels.empty()) return;
  page.heading("Largest kernels");
  Table full({{"", kNumber}, {"name"}});
  Table table({{"kernel"},
               {"launched by"},
               {"count", kNumber},
               {"median", kNumber, "µs"},
               {"total", kNumber, "ms"},
               {"share", kNumber, "%"}});
  for (std::size_t i = 0; i < std::min(kMostKernels, kernels.size()); ++i) {
    const KernelReport& each = kernels[i];
    table.add_row(
        {short_kernel_name(each.name, kLongestKernelName), cut_to(each.op, kLongestOpName),
         format_count(each.count), format_number(1e6 * each.median.value(), 3),
         milliseconds_text(each.total, kernels.front().total), share_text(each.total, total)});
    full.add_row({std::to_string(i + 1), each.name});
  }
  page.table(table);
  page.figure("The names of these kernels in full, in the same order", full.html());
}

void add_overview(Page& page, const std::vector<TraceReport>& reports,
                  const std::vector<std::string>& names) {
  page.paragraph(
      "The step is the time of one step; the columns behind it are of the whole recording.");
  Table table({{"trace"},
               {"rank", kNumber},
               {"step", kNumber, "ms"},
               {"busy", kNumber, "ms"},
               {"computing", kNumber, "ms"},
               {"collectives", kNumber, "ms"},
               {"exposed", kNumber, "ms"}});
  Seconds largest;
  for (const TraceReport& each : reports)
    largest = std::max({largest, each.times.busy, each.step.value_or(Seconds())});
  const auto ms = [&](Seconds time) { return milliseconds_text(time, largest); };
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const TraceReport& each = reports[i];
    table.add_row({printable(names[i]), count_or_empty(each.rank), each.step ? ms(*each.step) : "",
                   ms(each.times.busy), ms(each.times.compute), ms(each.times.collective),
                   ms(each.times.exposed_collective)});
  }
  page.table(table);
}

// Adds a kernel or collective of another trace; the median follows.
template <class Report>
void join(const Report& each, Report& sum) {
  sum.count += each.count;
  sum.total += each.total;
  sum.times.insert(sum.times.end(), each.times.begin(), each.times.end());
}

// The values with their medians, longest in all first.
template <class Key, class Report>
std::vector<Report> with_medians(std::map<Key, Report> sums) {
  std::vector<Report> reports;
  for (auto& [key, sum] : sums) {
    set_median(sum);
    reports.push_back(std::move(sum));
  }
  std::stable_sort(reports.begin(), reports.end(),
                   [](const Report& a, const Report& b) { return a.total > b.total; });
  return reports;
}

// The kernels of all traces, those of one name together.
std::vector<KernelReport> kernels_of_all(const std::vector<TraceReport>& reports) {
  std::map<std::string, KernelReport> sums;
  for (const TraceReport& report : reports)
    for (const KernelReport& each : report.by_kernel)
      join(each, sums.try_emplace(each.name, KernelReport{each.name, each.op, each.category})
                     .first->second);
  return with_medians(std::move(sums));
}

Seconds total_of(const std::vector<TraceReport>& reports) {
  Seconds total;
  for (const TraceReport& report : reports)
    for (const Seconds each : report.by_category) total += each;
  return total;
}

calibration::BusyTimes mean_of(const std::vector<const TraceReport*>& reports) {
  calibration::BusyTimes mean;
  const auto count = static_cast<double>(reports.size());
  for (const TraceReport* report : reports)
    for (const auto part :
         {&calibration::BusyTimes::window, &calibration::BusyTimes::busy,
          &calibration::BusyTimes::compute, &calibration::BusyTimes::collective,
          &calibration::BusyTimes::exposed_collective, &calibration::BusyTimes::host_bound_gaps})
      mean.*part += report->times.*part / count;
  return mean;
}

// Collectives of one kind, size and group together.
std::vector<CollectiveReport> collectives_of_all(const std::vector<const TraceReport*>& reports) {
  using Key = std::tuple<std::string, std::optional<std::int64_t>, std::optional<std::int64_t>,
                         std::string>;
  std::map<Key, CollectiveReport> sums;
  for (const TraceReport* report : reports)
    for (const CollectiveReport& each : report->collectives) {
      CollectiveReport& sum = sums[{each.kind, each.bytes, each.group_size, each.group}];
      std::tie(sum.kind, sum.bytes, sum.group_size, sum.group) =
          std::tie(each.kind, each.bytes, each.group_size, each.group);
      join(each, sum);
    }
  return with_medians(std::move(sums));
}

// Each group's times are those of the mean of the ranks that are in it.
std::vector<calibration::GroupReport> groups_of_all(
    const std::vector<const TraceReport*>& reports) {
  std::map<std::string, std::pair<calibration::GroupReport, double>> sums;
  for (const TraceReport* report : reports)
    for (const calibration::GroupReport& each : report->groups) {
      auto& [sum, ranks] = sums[each.group];
      sum.group = each.group;
      sum.group_size = each.group_size;
      sum.busy += each.busy;
      sum.exposed += each.exposed;
      ranks += 1.0;
    }
  std::vector<calibration::GroupReport> groups;
  for (auto& [name, entry] : sums) {
    auto& [sum, ranks] = entry;
    sum.busy = sum.busy / ranks;
    sum.exposed = sum.exposed / ranks;
    groups.push_back(std::move(sum));
  }
  return groups;
}

// Steps of ranks that wait for each other are alike; which one is slowest tells little then.
void add_step_of_all(Page& page, const std::vector<TraceReport>& reports,
                     const std::vector<std::string>& names) {
  Seconds sum;
  double count = 0.0;
  std::optional<std::size_t> slowest;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    if (!reports[i].step) continue;
    sum += *reports[i].step;
    count += 1.0;
    if (!slowest || *reports[i].step > *reports[*slowest].step) slowest = i;
  }
  if (slowest)
    page.paragraph(
        fmt::format("A step takes {} in the mean of the traces and {} in the slowest, {}.",
                    format_time(sum / count), format_time(*reports[*slowest].step),
                    printable(names[*slowest])));
}

// Explains all traces together in which something ran on a device.
void add_mean(Page& page, const std::vector<TraceReport>& reports,
              const std::vector<std::string>& names) {
  std::vector<const TraceReport*> traced;
  for (const TraceReport& each : reports)
    if (each.devices > 0) traced.push_back(&each);
  add_step_of_all(page, reports, names);
  if (!traced.empty()) {
    TraceReport mean;
    mean.times = mean_of(traced);
    const auto count = static_cast<double>(traced.size());
    for (const TraceReport* each : traced) {
      mean.optimizer += each->optimizer / count;
      for (const KernelCategory category : enumerators<KernelCategory>())
        mean.by_category[category] += each->by_category[category] / count;
    }
    page.paragraph(fmt::format("Where the time of a trace went, in the mean of {}:",
                               format_plural(static_cast<std::int64_t>(traced.size()), "trace")));
    add_time(page, mean);
  }
  add_kernels(page, kernels_of_all(reports), total_of(reports));
  TraceReport all;
  all.collectives = collectives_of_all(traced);
  all.groups = groups_of_all(traced);
  add_collectives(page, all, "in the mean of its traces");
}

void add_details(Page& page, const TraceReport& report) {
  if (report.devices == 0) {
    page.paragraph(
        "The trace holds nothing that ran on a device. Usually the profiler then recorded the host "
        "alone.");
    return;
  }
  add_step_time(page, report);
  add_time(page, report);
  add_kernels(page, report.by_kernel, total_of({report}));
  add_collectives(page, report, "in all");
}

}  // namespace

void add_traces(Page& page, const std::vector<TraceReport>& reports,
                const std::optional<calibration::RankMatching>& matching, const Timeline& step,
                std::size_t shown) {
  std::vector<std::string> files;
  for (const TraceReport& report : reports) files.push_back(report.file);
  const std::vector<std::string> names = distinct_names(files);
  add_title(page, reports, names);
  for (std::size_t i = 0; i < reports.size(); ++i) {
    // The table below names the traces of many ranks.
    if (reports.size() <= kMostRanksNamed) add_identity(page, reports[i], names[i]);
    say_what_lacks(page, reports[i], names[i]);
  }
  if (reports.size() == 1) {
    add_details(page, reports.front());
  } else {
    add_overview(page, reports, names);
    add_mean(page, reports, names);
  }
  if (matching) {
    std::vector<RankFile> ranks;
    for (std::size_t i = 0; i < reports.size(); ++i)
      ranks.push_back({reports[i].file, names[i], reports[i].times.window});
    add_matching(page, *matching, ranks);
  }
  const bool is_cut = step.spans.size() == calibration::kMostInAPicture;
  page.figure(fmt::format("{} recorded step of {}: matrix products and attention dark blue, other "
                          "kernels light blue, copies gray, collectives orange. The wheel zooms, "
                          "dragging moves, a double click shows all.",
                          is_cut ? fmt::format("The first {} activities of a",
                                               format_count(calibration::kMostInAPicture))
                                 : "One",
                          printable(names[shown])),
              timeline_figure(step));
}

void add_products(Page& page, std::vector<calibration::TimedProduct> products,
                  const AcceleratorSpec* device) {
  if (products.empty()) return;
  order_by_time(products);
  page.heading("Matrix products");
  Table table({{"m x n x k"},
               {"format"},
               {"count", kNumber},
               {"median", kNumber, "µs"},
               {"total", kNumber, "ms"},
               {"TFLOP/s", kNumber},
               {"peak", kNumber, "%"},
               {"memory", kNumber, "%"}});
  for (std::size_t i = 0; i < std::min(kMostKernels, products.size()); ++i) {
    const calibration::TimedProduct& each = products[i];
    const auto& work = std::get<GemmWork>(each.kernel.work);
    std::optional<calibration::Roofline> roofline;
    if (device != nullptr)
      roofline = calibration::roofline_of(work, each.kernel.precision, each.kernel.time, *device);
    table.add_row(
        {fmt::format("{}{} x {} x {}", work.batch > 1 ? fmt::format("{} of ", work.batch) : "",
                     work.m, work.n, work.k),
         name_of(each.kernel.precision), format_count(each.calls),
         format_number(1e6 * each.kernel.time.value(), 3),
         milliseconds_text(each.total, products.front().total),
         format_number((work.flop() / each.kernel.time).value() * 1e-12, 3),
         roofline ? format_percent(roofline->of_peak) : "",
         roofline ? format_percent(roofline->of_bandwidth) : ""});
  }
  page.table(table);
  if (products.size() > kMostKernels)
    page.paragraph(fmt::format("These are the largest {} of {}; --json lists all.", kMostKernels,
                               products.size()));
  page.paragraph(device != nullptr
                     ? fmt::format("Shares are those of the {}'s peak of the format, and of its "
                                   "memory bandwidth if each operand and result moves once.",
                                   device->name)
                     : "No profile is of this GPU: shares of its peaks are not known.");
}

}  // namespace shardwright::cli
