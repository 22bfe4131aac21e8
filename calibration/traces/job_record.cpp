#include "calibration/traces/job_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "core/base/error.hpp"
#include "core/base/json_reader.hpp"

namespace shardwright::calibration {
namespace {

constexpr const char* kExpectedRecord =
    "a record of a job's ops: CSV with the columns step, stage, op, start_s and duration_s";
constexpr double kLongestTime = 1e9;

std::vector<std::string_view> cells_of(std::string_view line, char separator) {
  std::vector<std::string_view> cells;
  for (;;) {
    const std::size_t end = line.find(separator);
    cells.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return cells;
    line.remove_prefix(end + 1);
  }
}

std::optional<std::size_t> column_of(const std::vector<std::string_view>& header,
                                     std::string_view name) {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header.begin());
}

struct Columns {
  std::size_t step = 0, stage = 0, op = 0, start = 0, duration = 0;
  std::optional<std::size_t> replica, rank, sequence;
  // Spreadsheets of countries whose numbers have a decimal comma write semicolons.
  char separator = ',';
};

std::optional<Columns> columns_of(std::string_view line) {
  Columns columns;
  if (line.find(',') == std::string_view::npos) columns.separator = ';';
  const std::vector<std::string_view> header = cells_of(line, columns.separator);
  const std::pair<const char*, std::size_t*> needed[] = {{"step", &columns.step},
                                                         {"stage", &columns.stage},
                                                         {"op", &columns.op},
                                                         {"start_s", &columns.start},
                                                         {"duration_s", &columns.duration}};
  for (const auto& [name, place] : needed) {
    const auto found = column_of(header, name);
    if (!found) return std::nullopt;
    *place = *found;
  }
  columns.replica = column_of(header, "dp_rank");
  columns.rank = column_of(header, "rank");
  columns.sequence = column_of(header, "seq_id");
  return columns;
}

class JobReader {
 public:
  explicit JobReader(const std::string& source) { record_.file = source; }

  void read(std::string_view line, std::size_t number) {
    if (line.empty()) return;
    if (!columns_) {
      columns_ = columns_of(line);
      if (!columns_) fail(number, line);
      return;
    }
    cells_ = cells_of(line, columns_->separator);
    number_ = number;
    JobOp op;
    op.op = cell(columns_->op);
    op.start = time(columns_->start);
    op.duration = time(columns_->duration);
    const std::optional<std::size_t> replica =
        columns_->replica ? columns_->replica : columns_->rank;
    const JobWorker worker{integer(columns_->stage), replica ? integer(*replica) : 0};
    if (columns_->sequence) op.sequence = integer(*columns_->sequence);
    record_.steps[integer(columns_->step)][worker].push_back(std::move(op));
  }

  JobRecord take() {
    if (record_.steps.empty()) throw InputError(record_.file, {{"", "no op", kExpectedRecord}});
    for (auto& [number, workers] : record_.steps) {
      for (auto& [worker, ops] : workers) {
        order(ops);
        refuse_overlaps(worker, ops);
      }
    }
    if (!columns_->replica && columns_->rank) number_replicas();
    return std::move(record_);
  }

 private:
  [[noreturn]] void fail(std::size_t number, std::string_view found) const {
    throw InputError(record_.file, {{fmt::format("line {}", number),
                                     std::string(found.substr(0, 80)), kExpectedRecord}});
  }

  std::string_view cell(std::size_t column) const {
    if (column >= cells_.size()) fail(number_, fmt::format("{} cells", cells_.size()));
    return cells_[column];
  }

  template <class Number>
  Number parsed(std::size_t column) const {
    const std::string_view text = cell(column);
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) fail(number_, text);
    return value;
  }

  std::int64_t integer(std::size_t column) const { return parsed<std::int64_t>(column); }

  Seconds time(std::size_t column) const {
    const auto value = parsed<double>(column);
    if (!std::isfinite(value) || value < 0.0 || value > kLongestTime) fail(number_, cell(column));
    return Seconds(value);
  }

  // Ranks of a stage are its replicas, in their order.
  void number_replicas() {
    std::map<std::int64_t, std::set<std::int64_t>> ranks_of_stage;
    for (const auto& [number, workers] : record_.steps)
      for (const auto& [worker, ops] : workers) ranks_of_stage[worker.stage].insert(worker.replica);
    for (auto& [number, workers] : record_.steps) {
      std::map<JobWorker, std::vector<JobOp>> numbered;
      for (auto& [worker, ops] : workers) {
        const std::set<std::int64_t>& ranks = ranks_of_stage[worker.stage];
        const auto replica = std::distance(ranks.begin(), ranks.find(worker.replica));
        numbered[{worker.stage, replica}] = std::move(ops);
      }
      workers = std::move(numbered);
    }
  }

  // A worker computes one op of a name at a time: what overlaps is of several workers.
  void refuse_overlaps(const JobWorker& worker, const std::vector<JobOp>& ops) const {
    std::map<std::string, Seconds> ends;
    for (const JobOp& op : ops) {
      if (op.op.find("compute") == std::string::npos) continue;
      Seconds& end = ends[op.op];
      constexpr Seconds kRounding = microseconds(1.0);
      if (op.start + kRounding < end)
        throw InputError(
            record_.file,
            {{fmt::format("stage {}", worker.stage),
              fmt::format("two ops {} at the same time", shown(op.op)),
              "ops of one worker one after the other: a column dp_rank, or rank, that tells the "
              "replicas of a stage apart"}});
      end = op.start + op.duration;
    }
  }

  void order(std::vector<JobOp>& ops) const {
    std::stable_sort(ops.begin(), ops.end(),
                     [](const JobOp& a, const JobOp& b) { return a.start < b.start; });
    if (columns_->sequence) return;
    std::map<std::string, std::int64_t> numbers;
    for (JobOp& each : ops) each.sequence = numbers[each.op]++;
  }

  JobRecord record_;
  std::optional<Columns> columns_;
  std::vector<std::string_view> cells_;
  std::size_t number_ = 0;
};

}  // namespace

bool is_job_header(std::string_view line) {
  return columns_of(line).has_value();
}

JobRecord read_job_record(const ByteSource& bytes, const std::string& source) {
  JobReader reader(source);
  for_each_line(bytes, source, kExpectedRecord,
                [&](const std::string& line, std::size_t number) { reader.read(line, number); });
  return reader.take();
}

}  // namespace shardwright::calibration
