// Published timings of collectives: rows of `collectives.jsonl`-like files
// (docs/formats/timing_rows.md).
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json_reader.hpp"
#include "core/program/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "sim/cost/collective_cost.hpp"
#include "sim/validation/measurement.hpp"
#include "sim/validation/timing_report.hpp"

namespace shardwright::sim {

struct CollectiveTiming {
  std::string id, source, system, gpu, notes;
  std::optional<ClusterSpec> cluster;
  std::string name;  // of the collective: "all_reduce", "alltoall", …
  OpKind kind = OpKind::AllReduce;
  std::int64_t members = 2;
  std::int64_t nodes = 0;   // 0: the source does not say
  std::int64_t groups = 1;  // that run at the same time, on one node
  Bytes bytes;              // as in `CommunicationWork`
  std::optional<Algorithm> forced;
  bool for_fitting = false;
  Seconds call;  // that the benchmark's framework adds to each collective; zero for nccl-tests
  Seconds measured;
  std::vector<std::string> filled_in;  // what was assumed: "id: line 3"
  std::string unsupported;             // why the row cannot be predicted; empty: it can
};

// A row that cannot be read is `unsupported`, with its problems. Throws InputError if none can be
// read, as `read_row_lines` does.
std::vector<CollectiveTiming> read_collective_timings(const std::string& file);

// The same of a stream's lines; `source` names it in errors.
std::vector<CollectiveTiming> read_collective_timings(std::istream& stream,
                                                      const std::string& source);

// Typed rows. Throws InputError with all problems of the stream.
std::vector<CollectiveTiming> read_typed_collectives(std::istream& stream,
                                                     const std::string& source);

// One line of a file.
nlohmann::ordered_json to_json(const CollectiveTiming& timing, const PublishedSource& source,
                               bool verified);

// The names of collectives in rows.
const EnumNames<OpKind>& collective_names();

// The timing's cluster, or the shipped cluster that the timing's system is: the one with an alias
// that stands in the system's name or the notes, else the one with its accelerator whose network is
// nearest to what the name says. None where no cluster has the accelerator.
std::optional<ClusterSpec> cluster_of(const CollectiveTiming& timing);

// Why no cluster stands for the timing's system; empty where one does.
std::string why_not_comparable(const CollectiveTiming& timing);

// Why the row's accelerators cannot be those of this cluster, or cannot have been so fast; empty
// where they can.
std::string gap_on(const CollectiveTiming& timing, const ClusterSpec& cluster);

// All of the world is one group, or `timing.groups` alike on one node. A ring of sends fills every
// member's NIC.
GroupPlacement placement_of(const CollectiveTiming& timing, const ClusterSpec& cluster);

Seconds predict(const CollectiveTiming& timing, const ClusterSpec& cluster);

// Predicts every row with shipped clusters; rows without one, rows that do not say enough,
// those that cannot be read and those that are no full printed table ("fit": false) are skipped
// with their reason.
TimingReport validate_collectives(const std::string& file);

}  // namespace shardwright::sim
