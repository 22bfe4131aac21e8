#include "cli/output/collective_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "cli/output/trace_columns.hpp"
#include "core/base/distinct_names.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/quantity_text.hpp"

namespace shardwright::cli {
namespace {

using calibration::CollectiveReport;
using calibration::TraceReport;

// A straggler causes this part of the waiting at least, and the others wait for it for this part of
// the recording beyond what it waits itself.
constexpr double kLeastShare = 0.5;
constexpr double kLeastWait = 0.01;

std::string bytes_or_empty(const std::optional<std::int64_t>& bytes) {
  return bytes ? format_bytes(Bytes(static_cast<double>(*bytes))) : "";
}

std::string bandwidth_or_empty(const std::optional<BytesPerSecond>& bandwidth) {
  return bandwidth ? format_bandwidth(*bandwidth) : "";
}

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
      "size and order.",
      format_count(lost));
  const auto shared = static_cast<double>(matching.matched + lost);
  if (static_cast<double>(lost) > kFew * shared)
    page.warning(text + " Transfers, skew and the straggler rest on the others.");
  else
    page.paragraph(text);
}

void add_matched(Page& page, const calibration::RankMatching& matching,
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
  for (std::size_t i = 0; i < std::min(kMostRows, matching.collectives.size()); ++i) {
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
               {"others waited for it", kNumber, "ms"},
               {"arrived last", kNumber, "times"},
               {"unmatched", kNumber}});
  Seconds longest;
  for (const calibration::RankWaits& each : matching.ranks)
    longest = std::max({longest, each.waited, each.caused});
  for (const calibration::RankWaits& each : matching.ranks) {
    waits.add_row({printable(file_of(each, files).name), std::to_string(each.device),
                   milliseconds_text(each.waited, longest), milliseconds_text(each.caused, longest),
                   format_count(each.last_arrivals), format_count(each.unmatched)});
  }
  page.table(waits);
}

// Says which rank causes most of the waiting, and whether that makes it a straggler.
void add_straggler(Page& page, const calibration::RankMatching& matching,
                   const std::vector<RankFile>& files) {
  if (matching.ranks.size() < 2) return;
  const calibration::RankWaits& last = *std::ranges::max_element(
      matching.ranks, {}, [](const auto& each) { return each.caused.value(); });
  Seconds caused;
  for (const calibration::RankWaits& each : matching.ranks) caused += each.caused;
  if (caused <= Seconds()) return;
  const RankFile& file = file_of(last, files);
  const bool is_alone =
      std::ranges::count(matching.ranks, last.file, &calibration::RankWaits::file) == 1;
  const std::string name =
      printable(file.name) + (is_alone ? "" : fmt::format(", device {}", last.device));
  const bool is_straggler =
      last.caused >= caused * kLeastShare && last.caused - last.waited >= file.window * kLeastWait;
  page.paragraph(fmt::format(
      "{}: it causes {} % of the waiting. Each other rank waits {} for it in the mean, and it "
      "waits {} for others. It arrives last at {} of its {}.",
      is_straggler ? "The straggler is " + name
                   : "No rank is a straggler, and the latest one is " + name,
      share_text(last.caused, caused), format_time(last.caused), format_time(last.waited),
      format_count(last.last_arrivals), format_plural(last.matched, "matched collective")));
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

void say_what_the_host_timed(Page& page,
                             const std::vector<calibration::CollectiveTimings>& timings) {
  std::set<std::string> kinds;
  for (const calibration::CollectiveTimings& each : timings)
    if (each.by_host) kinds.insert(std::string(name_of(each.kind)));
  const bool all = std::ranges::all_of(timings, &calibration::CollectiveTimings::by_host);
  if (all)
    page.paragraph("All times are the host's: the plugin took none on the device.");
  else if (!kinds.empty())
    page.paragraph(fmt::format(
        "Times are the device's, but those of {} the host's: the plugin took none on the device.",
        fmt::join(kinds, ", ")));
}

void say_what_is_left_out(Page& page, const std::vector<calibration::InspectorProcess>& processes) {
  std::map<std::string, std::int64_t> calls;
  std::int64_t unreadable_lines = 0;
  for (const calibration::InspectorProcess& process : processes) {
    for (const auto& [kind, count] : process.left_out) calls[kind] += count;
    unreadable_lines += process.unreadable_lines;
  }
  for (const auto& [kind, count] : calls)
    page.paragraph(fmt::format("{} of kind {} {} left out.", format_plural(count, "call"),
                               printable(kind), count == 1 ? "is" : "are"));
  if (unreadable_lines > 0)
    page.warning(
        fmt::format("{} that {} no JSON {} left out.", format_plural(unreadable_lines, "line"),
                    unreadable_lines == 1 ? "is" : "are", unreadable_lines == 1 ? "is" : "are"));
}

}  // namespace

void add_collectives(Page& page, const TraceReport& report, const char* of_what) {
  if (report.collectives.empty()) return;
  page.heading("Collectives");
  Table table({{"kind"},
               {"size", kNumber},
               {"group"},
               {"ranks", kNumber},
               {"count", kNumber},
               {"median", kNumber},
               {"bus bandwidth", kNumber}});
  for (std::size_t i = 0; i < std::min(kMostRows, report.collectives.size()); ++i) {
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

void add_matching(Page& page, const calibration::RankMatching& matching,
                  const std::vector<RankFile>& files) {
  add_matched(page, matching, files);
  add_straggler(page, matching, files);
}

void add_collective_file(Page& page, const calibration::CollectiveFile& file) {
  page.heading("Collectives of " + file.file);
  page.table(collective_timings_table(file.collectives));
  if (!file.left_out.empty()) page.paragraph(timings_left_out(file.left_out));
  if (file.has_wrong_data) page.warning(wrong_data_warning(file.file));
}

std::string wrong_data_warning(const std::string& file) {
  return fmt::format(
      "{}: the collectives delivered wrong data, so that their times may be those of a broken "
      "network.",
      printable(file));
}

std::string timings_left_out(const std::set<std::string>& programs) {
  return fmt::format("Timings of {} are left out: no plan uses such a collective.",
                     printable(fmt::format("{}", fmt::join(programs, ", "))));
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
  const auto timings = calibration::timings_of(processes);
  page.table(collective_timings_table(timings));
  say_what_the_host_timed(page, timings);
  say_what_is_left_out(page, processes);
  if (!matching) return;
  std::vector<RankFile> ranks;
  for (std::size_t i = 0; i < files.size(); ++i) {
    RankFile& rank = ranks.emplace_back(RankFile{files[i], names[i], Seconds()});
    for (const calibration::InspectorProcess& each : processes)
      if (each.file == files[i])
        for (const calibration::InspectorCall& call : each.calls) rank.window += call.time;
  }
  add_matching(page, *matching, ranks);
}

}  // namespace shardwright::cli
