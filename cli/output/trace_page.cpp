#include "cli/output/trace_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "calibration/traces/roofline.hpp"
#include "cli/output/figures.hpp"
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
constexpr std::size_t kMostCollectives = 16;
constexpr std::size_t kLongestKernelName = 28;
constexpr std::size_t kLongestOpName = 18;
constexpr std::size_t kMostRanksNamed = 8;
// A straggler arrives last at this part of the collectives at least, and the others wait for this part of their time.
constexpr double kLastArrivals = 0.5;
constexpr double kLeastWait = 0.01;

// Milliseconds with as many decimals as the largest of the column needs.
std::string milliseconds_text(Seconds time, Seconds largest) {
  return format_fixed(1e3 * time.value(), decimals_for(1e3 * largest.value()));
}

std::string share_text(Seconds part, Seconds whole) {
  return whole > Seconds(0.0) ? format_percent(part / whole) : "";
}

std::string cut_to(const std::string& text, std::size_t longest) {
  return printable(text.size() <= longest ? text : text.substr(0, longest - 1) + "…");
}

// "Trace rank0.json: NVIDIA H100, rank 0 of 2"; of several "Traces of 2 files: NVIDIA H100, ranks 0, 1 of 2".
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
  if (report.unusable_events > 0)
    page.warning(fmt::format("{} without a usable time on a device are left out.",
                             format_plural(report.unusable_events, "event")));
}

void add_step_time(Page& page, const TraceReport& report) {
  if (!report.step) {
    page.paragraph("The trace marks no steps on a device: it has no annotation ProfilerStep#N.");
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

template <class T>
std::string count_or_empty(const std::optional<T>& value) {
  return value ? format_count(*value) : "";
}

std::string bytes_or_empty(const std::optional<std::int64_t>& bytes) {
  return bytes ? format_bytes(Bytes(static_cast<double>(*bytes))) : "";
}

std::string bandwidth_or_empty(const std::optional<BytesPerSecond>& bandwidth) {
  return bandwidth ? format_bandwidth(*bandwidth) : "";
}

void say_how_many_are_left_out(Page& page, std::size_t rows) {
  if (rows > kMostCollectives)
    page.paragraph(
        fmt::format("These are the largest {} of {}; --json lists all.", kMostCollectives, rows));
}

// `of_what`: what the times of groups are of.
void add_collectives(Page& page, const TraceReport& report, const char* of_what = "in all") {
  if (report.collectives.empty()) return;
  page.heading("Collectives");
  Table table({{"kind"},
               {"size", kNumber},
               {"group"},
               {"ranks", kNumber},
               {"count", kNumber},
               {"median", kNumber},
               {"bus bandwidth", kNumber}});
  for (std::size_t i = 0; i < std::min(kMostCollectives, report.collectives.size()); ++i) {
    const CollectiveReport& each = report.collectives[i];
    table.add_row({each.kind, bytes_or_empty(each.bytes), cut_to(each.group, kLongestOpName),
                   count_or_empty(each.group_size), format_count(each.count),
                   format_time(each.median), bandwidth_or_empty(each.bus_bandwidth)});
  }
  page.table(table);
  say_how_many_are_left_out(page, report.collectives.size());
  for (const calibration::GroupReport& group : report.groups) {
    const std::string name =
        group.group.empty() ? "unknown groups" : "group " + printable(group.group);
    page.paragraph(fmt::format("Collectives of {} run for {} {}, of which {} % are exposed.", name,
                               format_time(group.busy), of_what,
                               share_text(group.exposed, group.busy)));
  }
}

void add_overview(Page& page, const std::vector<TraceReport>& reports,
                  const std::vector<std::string>& names) {
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

// A file that holds ranks: its name on the page, and how long it was recorded.
struct RankFile {
  std::string file, name;
  Seconds window;
};

const RankFile& file_of(const calibration::RankWaits& rank, const std::vector<RankFile>& files) {
  return *std::ranges::find(files, rank.file, &RankFile::file);
}

// The name, or of a group that the framework did not name the place of its members.
std::string group_text(const calibration::MatchedCollectives& collectives) {
  const calibration::GroupShape& shape = collectives.shape;
  const bool has_name = !collectives.group.empty() && collectives.group != "undefined";
  if (has_name || shape.empty()) return cut_to(collectives.group, kLongestOpName);
  if (shape.size() > 1)
    return fmt::format("{} blocks of {}", collectives.group_size.value_or(0) / shape.front().first,
                       shape.front().first);
  return shape.front().second == 1 ? "neighbours"
                                   : fmt::format("{} ranks apart", shape.front().second);
}

void say_what_is_unmatched(Page& page, const calibration::RankMatching& matching) {
  constexpr double kFew = 0.05;
  if (matching.alone > 0)
    page.paragraph(fmt::format("{} are of groups of which no other rank is traced.",
                               format_count(matching.alone)));
  const std::int64_t lost = matching.unmatched - matching.alone;
  if (lost == 0) return;
  const std::string text = fmt::format(
      "{} could not be matched: no other trace has the call, or the recordings differ in kind, "
      "size "
      "and order.",
      format_count(lost));
  const auto shared = static_cast<double>(matching.matched + lost);
  if (static_cast<double>(lost) > kFew * shared)
    page.warning(text + " Transfers, skew and the straggler rest on the others.");
  else
    page.paragraph(text);
}

void add_matching(Page& page, const calibration::RankMatching& matching,
                  const std::vector<RankFile>& files) {
  const std::int64_t all = matching.matched + matching.unmatched;
  if (all == 0) return;
  page.heading("Collectives matched across ranks");
  page.paragraph(fmt::format(
      "{} of {} are matched. The transfer is the shortest time over the ranks; the skew is what "
      "the rank that arrived first waited for the last one.",
      format_count(matching.matched), format_count(all)));
  say_what_is_unmatched(page, matching);
  if (matching.matched == 0) return;
  Table table({{"kind"},
               {"size", kNumber},
               {"group"},
               {"ranks", kNumber},
               {"count", kNumber},
               {"transfer", kNumber},
               {"skew", kNumber},
               {"bus bandwidth", kNumber}});
  for (std::size_t i = 0; i < std::min(kMostCollectives, matching.collectives.size()); ++i) {
    const calibration::MatchedCollectives& each = matching.collectives[i];
    table.add_row({each.kind, bytes_or_empty(each.bytes), group_text(each),
                   format_count(each.ranks), format_count(each.count), format_time(each.transfer),
                   format_time(each.skew), bandwidth_or_empty(each.bus_bandwidth)});
  }
  page.table(table);
  say_how_many_are_left_out(page, matching.collectives.size());
  Table waits({{"trace"},
               {"device", kNumber},
               {"waited", kNumber, "ms"},
               {"arrived last", kNumber, "times"},
               {"unmatched", kNumber}});
  Seconds longest;
  for (const calibration::RankWaits& each : matching.ranks)
    longest = std::max(longest, each.waited);
  for (const calibration::RankWaits& each : matching.ranks) {
    waits.add_row({printable(file_of(each, files).name), std::to_string(each.device),
                   milliseconds_text(each.waited, longest), format_count(each.last_arrivals),
                   format_count(each.unmatched)});
  }
  page.table(waits);
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

// Names the rank for which the others wait, if there is one.
void add_straggler(Page& page, const calibration::RankMatching& matching,
                   const std::vector<RankFile>& files) {
  std::int64_t arrivals = 0;
  Seconds waited;
  for (const calibration::RankWaits& each : matching.ranks) {
    arrivals += each.last_arrivals;
    waited += each.waited;
  }
  if (arrivals == 0 || matching.ranks.size() < 2) return;
  const calibration::RankWaits& last = *std::max_element(
      matching.ranks.begin(), matching.ranks.end(),
      [](const auto& a, const auto& b) { return a.last_arrivals < b.last_arrivals; });
  const double share = static_cast<double>(last.last_arrivals) / static_cast<double>(arrivals);
  const Seconds others = (waited - last.waited) / static_cast<double>(matching.ranks.size() - 1);
  const RankFile& file = file_of(last, files);
  const bool is_alone =
      std::ranges::count(matching.ranks, last.file, &calibration::RankWaits::file) == 1;
  const std::string name =
      printable(file.name) + (is_alone ? "" : fmt::format(", device {}", last.device));
  if (share < kLastArrivals || others - last.waited < file.window * kLeastWait) {
    page.paragraph("No rank is a straggler: none is late so often that the others wait for it.");
    return;
  }
  page.paragraph(
      fmt::format("The straggler is {}: it arrives last at {} % of the matched collectives, and "
                  "each other rank waits for {} in the mean, while it waits for {}.",
                  name, format_percent(share), format_time(others), format_time(last.waited)));
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
  add_collectives(page, report);
}

Table collective_timings_table(const std::vector<calibration::CollectiveTimings>& timings) {
  Table table({{"kind"},
               {"size", kNumber},
               {"ranks", kNumber},
               {"count", kNumber},
               {"median", kNumber},
               {"bus bandwidth", kNumber}});
  for (const calibration::CollectiveTimings& each : timings)
    table.add_row({name_of(each.kind), format_bytes(each.bytes), format_count(each.group_size),
                   format_count(each.count), format_time(each.median),
                   format_bandwidth(each.bus_bandwidth)});
  return table;
}

}  // namespace

void add_traces(Page& page, const std::vector<TraceReport>& reports,
                const std::optional<calibration::RankMatching>& matching, const Timeline& step,
                std::size_t shown) {
  std::vector<std::string> files;
  for (const TraceReport& report : reports) files.push_back(report.file);
  const std::vector<std::string> names = distinct_names(files);
  add_title(page, reports, names);
  for (std::size_t i = 0; i < reports.size(); ++i) add_identity(page, reports[i], names[i]);
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
    add_straggler(page, *matching, ranks);
  } else if (reports.size() > 1 && std::ranges::any_of(reports, [](const TraceReport& each) {
               return !each.collectives.empty();
             })) {
    page.paragraph(
        "Collectives are not matched across the traces: they are not of different ranks of one "
        "run.");
  }
  page.figure(fmt::format("One recorded step of {}: matrix products and attention dark blue, other "
                          "kernels light blue, copies gray, collectives orange. The wheel zooms, "
                          "dragging moves, a double click shows all.",
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

void add_collective_file(Page& page, const calibration::CollectiveFile& file) {
  page.heading("Collectives of " + file.file);
  page.table(collective_timings_table(file.collectives));
}

void add_inspector(Page& page, const std::vector<calibration::InspectorProcess>& processes,
                   const std::optional<calibration::RankMatching>& matching) {
  if (processes.empty()) return;
  std::vector<std::string> files;
  for (const calibration::InspectorProcess& each : processes)
    if (std::ranges::find(files, each.file) == files.end()) files.push_back(each.file);
  const std::vector<std::string> names = distinct_names(files);
  page.heading(files.size() == 1 ? "Collectives of " + printable(files.front())
                                 : fmt::format("Collectives of {} files", files.size()));
  page.paragraph(fmt::format("NCCL's Inspector watched {} of {}.",
                             format_plural(static_cast<std::int64_t>(processes.size()), "rank"),
                             format_count(processes.front().world().ranks)));
  page.table(collective_timings_table(calibration::timings_of(processes)));
  if (!matching) return;
  std::vector<RankFile> ranks;
  for (std::size_t i = 0; i < files.size(); ++i) {
    RankFile& rank = ranks.emplace_back(RankFile{files[i], names[i], Seconds()});
    for (const calibration::InspectorProcess& each : processes)
      if (each.file == files[i])
        for (const calibration::InspectorCall& call : each.calls) rank.window += call.time;
  }
  add_matching(page, *matching, ranks);
  add_straggler(page, *matching, ranks);
}

void add_structure(Page& page, const calibration::LayerStructure& structure) {
  std::string shape;
  const auto add = [&](const char* name, const std::optional<std::int64_t>& size) {
    if (size)
      shape += fmt::format("{}{} {}", shape.empty() ? " Sizes of products: " : ", ", name,
                           format_count(*size));
  };
  add("tokens", structure.tokens);
  add("hidden", structure.hidden);
  add("vocabulary", structure.vocabulary);
  std::string incomplete;
  for (const calibration::IncompleteLayer& layer : structure.incomplete)
    incomplete += fmt::format(" Layer {} has {} of them{}.", layer.number, layer.anchors,
                              layer.lacks_attention ? ", and no attention" : "");
  page.heading("Layers");
  page.paragraph(fmt::format(
      "The first forward pass has {} of {} products and attentions, with {} kernels and {} each.{}",
      format_plural(structure.layers, "layer"), structure.anchors,
      format_number(structure.kernels, 3), format_time(structure.time), incomplete));
  page.paragraph(fmt::format(
      "They hold {} of the {} products and attentions up to the end of that pass.{}{}",
      format_count(structure.anchors_of_layers), format_count(structure.anchors_of_pass),
      structure.by_shape ? ""
                         : " The trace has no shapes: products count as equal by the names of "
                           "their kernels, which is less sure.",
      shape.empty() ? shape : shape + "."));
}

void add_job(Page& page, const calibration::StragglerAnalysis& job) {
  page.heading("Stragglers");
  page.paragraph(fmt::format(
      "{}: {} of {} and {}. A step takes {}; replayed without the host's delays {}, and {} if all "
      "workers were alike: a slowdown of {}.",
      printable(job.file), format_plural(job.steps, "step"), format_plural(job.stages, "stage"),
      format_plural(job.replicas, "replica"), format_time(job.recorded), format_time(job.replayed),
      format_time(job.ideal), format_fixed(job.slowdown(), 3)));
  std::vector<std::pair<std::string, double>> causes;
  for (const auto& [stage, slowdown] : job.by_stage)
    causes.emplace_back(fmt::format("stage {}", stage), slowdown);
  for (const auto& [replica, slowdown] : job.by_replica)
    causes.emplace_back(fmt::format("replica {}", replica), slowdown);
  for (const auto& [op, slowdown] : job.by_op) causes.emplace_back(printable(op), slowdown);
  for (const auto& [worker, slowdown] : job.by_worker)
    causes.emplace_back(fmt::format("stage {} of replica {}", worker.stage, worker.replica),
                        slowdown);
  std::stable_sort(causes.begin(), causes.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  Table table({{"with only these as recorded"}, {"slowdown", kNumber}});
  for (std::size_t i = 0; i < std::min(kMostCollectives, causes.size()); ++i)
    table.add_row({causes[i].first, format_fixed(causes[i].second, 3)});
  page.table(table);
  say_how_many_are_left_out(page, causes.size());
}

void add_held_out(Page& page, const calibration::HeldOut& held_out) {
  page.heading("Predicted by the other traces");
  Table table({{"trace"},
               {"kernels", kNumber},
               {"unknown", kNumber},
               {"median error", kNumber, "%"},
               {"90th percentile", kNumber, "%"},
               {"error of the sum", kNumber, "%"}});
  std::vector<std::string> files;
  for (const calibration::KernelErrors& each : held_out.kernels) files.push_back(each.file);
  const std::vector<std::string> names = distinct_names(files);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const calibration::KernelErrors& each = held_out.kernels[i];
    table.add_row({printable(names[i]), format_count(each.kernels), format_count(each.unknown),
                   format_percent(each.median), format_percent(each.p90),
                   each.measured > Seconds(0.0)
                       ? format_signed_percent(each.predicted / each.measured - 1.0)
                       : ""});
  }
  page.table(table);
  if (held_out.predicted_step && held_out.measured_step)
    page.paragraph(fmt::format(
        "Step: {} predicted, {} measured ({} %).", format_time(*held_out.predicted_step),
        format_time(*held_out.measured_step),
        format_signed_percent(*held_out.predicted_step / *held_out.measured_step - 1.0)));
}

void add_overlap(Page& page, const calibration::OverlappedGradients& overlap) {
  page.heading("What if gradients were reduced as soon as they are there");
  if (overlap.moved <= 0.0) {
    page.paragraph("No reduction of a single gradient begins later than it could.");
    return;
  }
  page.paragraph(
      fmt::format("{} reductions of a step begin earlier, and the step takes {} instead of {} ({} "
                  "%). The replay "
                  "without the change takes {}.",
                  format_number(overlap.moved, 3), format_time(overlap.predicted(), 4),
                  format_time(overlap.recorded, 4),
                  format_signed_percent(overlap.predicted() / overlap.recorded - 1.0),
                  format_time(overlap.replayed, 4)));
}

}  // namespace shardwright::cli
