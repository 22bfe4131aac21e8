// What traces, NCCL's Inspector and nccl-tests say on collectives, as text.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "calibration/collective_timings.hpp"
#include "calibration/traces/rank_matching.hpp"
#include "calibration/traces/trace_report.hpp"
#include "cli/output/page.hpp"

namespace shardwright::cli {

// A file that holds ranks: its name on the page, and how long it was recorded.
struct RankFile {
  std::string file, name;
  Seconds window;
};

// The collectives of a trace by kind, size and group, and the time of each group. `of_what`: what
// the times of groups are of, "in all" or the like.
void add_collectives(Page& page, const calibration::TraceReport& report, const char* of_what);

// The collectives that ranks share: transfers, waits for each other, and the straggler if there is
// one.
void add_matching(Page& page, const calibration::RankMatching& matching,
                  const std::vector<RankFile>& files);

// The collectives that a file of nccl-tests times.
void add_collective_file(Page& page, const calibration::CollectiveFile& file);

// Warns of a file in which nccl-tests found wrong data.
std::string wrong_data_warning(const std::string& file);

// Says which programs of nccl-tests were read past.
std::string timings_left_out(const std::set<std::string>& programs);

// The collectives and messages of processes that NCCL's Inspector watched, all together, and what
// they wait for each other. Nothing without a process.
void add_inspector(Page& page, const std::vector<calibration::InspectorProcess>& processes,
                   const std::optional<calibration::RankMatching>& matching);

}  // namespace shardwright::cli
