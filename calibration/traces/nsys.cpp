#include "calibration/traces/nsys.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>

#include "calibration/traces/host_record.hpp"
#include "calibration/traces/inflated_file.hpp"
#include "calibration/traces/kernel_category.hpp"
#include "core/base/error.hpp"

namespace shardwright::calibration {
namespace {

constexpr const char* kExpectedExport =
    "a database that nsys export --type sqlite wrote, with StringIds or CUPTI_ACTIVITY tables";
// In nanoseconds; their sums stay below 2^63.
constexpr std::int64_t kLatestTime = 4'000'000'000'000'000'000;
// Push-pop and start-end ranges of NVTX.
constexpr const char* kRanges = "eventType IN (59, 60) AND end IS NOT NULL";

// Launches of CUDA graphs, where it records them as a whole: the setting --cuda-graph-trace=graph.
constexpr const char* kGraphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";

constexpr const char* kActivityTables[] = {"CUPTI_ACTIVITY_KIND_KERNEL",
                                           "CUPTI_ACTIVITY_KIND_MEMCPY",
                                           "CUPTI_ACTIVITY_KIND_MEMSET", kGraphs};

// Those with many rows.
constexpr const char* kLargeTables[] = {"StringIds",
                                        "CUPTI_ACTIVITY_KIND_KERNEL",
                                        "CUPTI_ACTIVITY_KIND_MEMCPY",
                                        "CUPTI_ACTIVITY_KIND_MEMSET",
                                        kGraphs,
                                        "CUPTI_ACTIVITY_KIND_RUNTIME",
                                        "NVTX_EVENTS"};

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct FinishStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

// Reports how far a database was read, in bytes of its file.
class RowWatch {
 public:
  RowWatch(const std::string& file, const ReadingWatch& watch) : progress_(watch) {
    std::error_code none;
    const std::uintmax_t size = std::filesystem::file_size(file, none);
    bytes_ = none ? 0 : size;
  }

  // The rows that will be read.
  void expect(std::int64_t rows) {
    expected_ += static_cast<double>(std::max<std::int64_t>(rows, 0));
  }
  // As many as the file may hold, whatever it states.
  std::size_t rows_in_file(std::int64_t stated) const {
    constexpr std::uintmax_t kLeastRow = 16;
    return static_cast<std::size_t>(std::min<std::uintmax_t>(
        static_cast<std::uintmax_t>(std::max<std::int64_t>(stated, 0)), bytes_ / kLeastRow));
  }

  void add_row() {
    constexpr std::uint64_t kSome = 4096;
    if (++read_ % kSome != 0) return;
    progress_.stop_if_asked();
    const double share = std::min(1.0, static_cast<double>(read_) / std::max(1.0, expected_));
    progress_.reached(static_cast<std::uintmax_t>(share * static_cast<double>(bytes_)));
  }

 private:
  ReadBytes progress_;
  std::uintmax_t bytes_ = 0;
  std::uint64_t read_ = 0;
  double expected_ = 0.0;
};

class Row {
 public:
  explicit Row(sqlite3_stmt* statement) : statement_(statement) {}

  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string_view text(int column) const {
    const auto* bytes = sqlite3_column_text(statement_, column);
    if (bytes == nullptr) return {};
    return {reinterpret_cast<const char*>(bytes),
            static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
  }

 private:
  sqlite3_stmt* statement_;
};

class Database {
 public:
  Database(const std::string& file, const std::string& source, const ReadingWatch& watch)
      : source_(source), watch_(file, watch) {
    sqlite3* opened = nullptr;
    const int status = sqlite3_open_v2(file.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
    database_.reset(opened);
    if (status != SQLITE_OK) refuse("");
    // Whoever wrote the file is not trusted: its schema may call no function that has effects.
    sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    for_each("sqlite_master", "SELECT name FROM sqlite_master WHERE type = 'table'",
             [this](const Row& row) { tables_.emplace(row.text(0)); });
    for (const char* table : kLargeTables)
      if (has(table))
        for_each(table, fmt::format("SELECT MAX(_rowid_) FROM {}", table),
                 [this, table](const Row& row) {
                   watch_.expect(row.integer(0));
                   rows_[table] = watch_.rows_in_file(row.integer(0));
                 });
  }

  // About how many rows a large table has.
  std::size_t rows(const std::string& table) const {
    const auto known = rows_.find(table);
    return known == rows_.end() ? 0 : known->second;
  }

  bool has(const std::string& table) const { return tables_.contains(table); }

  bool has(const std::string& table, const std::string& column) {
    bool found = false;
    for_each(table, fmt::format("PRAGMA table_info({})", table),
             [&](const Row& row) { found = found || row.text(1) == column; });
    return found;
  }

  template <class Use>
  void for_each(const std::string& table, const std::string& query, const Use& use) {
    sqlite3_stmt* prepared = nullptr;
    const int status = sqlite3_prepare_v2(database_.get(), query.c_str(), -1, &prepared, nullptr);
    const std::unique_ptr<sqlite3_stmt, FinishStatement> statement(prepared);
    if (status != SQLITE_OK) refuse(table);
    int step = sqlite3_step(prepared);
    for (; step == SQLITE_ROW; step = sqlite3_step(prepared)) {
      watch_.add_row();
      use(Row(prepared));
    }
    if (step != SQLITE_DONE) refuse(table);
  }

 private:
  [[noreturn]] void refuse(const std::string& table) const {
    throw InputError(source_, {{table, sqlite3_errmsg(database_.get()), kExpectedExport}});
  }

  const std::string& source_;
  RowWatch watch_;
  std::unique_ptr<sqlite3, CloseDatabase> database_;
  std::set<std::string> tables_;
  std::map<std::string, std::size_t> rows_;
};

// "aten::addmm" of "aten::addmm, seq = 45339, op_id = 990761".
std::string_view op_name(std::string_view range) {
  return range.substr(0, std::min(range.find(", seq = "), range.find(", op_id = ")));
}

// "[[64, 32], [32, 16]]" of "aten::mm, op_id = 5, sizes = [[64, 32], [32, 16]], input_op_ids = …":
// the sizes of the inputs, which emit_nvtx(record_shapes=True) writes. Empty without them.
std::string_view sizes_in(std::string_view range) {
  constexpr std::string_view kMark = ", sizes = ";
  const std::size_t mark = range.find(kMark);
  if (mark == std::string_view::npos) return {};
  const std::string_view sizes = range.substr(mark + kMark.size());
  return sizes.substr(0, std::min(sizes.find(", input_op_ids"), sizes.size()));
}

// A global number holds the thread in its lowest 24 bits, and the process in the 24 above.
constexpr unsigned kThreadBits = 24;
constexpr std::uint64_t kThreadMask = (1U << kThreadBits) - 1;

std::int64_t process_of(std::int64_t global) {
  return static_cast<std::int64_t>((static_cast<std::uint64_t>(global) >> kThreadBits) &
                                   kThreadMask);
}

// Which GPU the devices of a recording are. The number of a device is that of CUDA in its process:
// CUDA_VISIBLE_DEVICES makes it 0 in every process of a job whose launcher gives each a GPU.
class DeviceNumbers {
 public:
  explicit DeviceNumbers(Database& database) {
    const std::string table = "TARGET_INFO_CUDA_DEVICE";
    for (const char* column : {"gpuId", "cudaId", "pid"})
      if (!database.has(table) || !database.has(table, column)) return;
    database.for_each(
        table, fmt::format("SELECT pid, cudaId, gpuId FROM {}", table), [this](const Row& row) {
          gpus_[{row.integer(0), row.integer(1)}] = static_cast<std::int32_t>(row.integer(2));
        });
  }

  // The place of a device among those seen so far.
  std::int32_t place_of(std::int64_t global_pid, std::int64_t device, bool runs_kernels) {
    const Key key{process_of(global_pid), device};
    if (last_ >= 0 && seen_[static_cast<std::size_t>(last_)].key == key) {
      seen_[static_cast<std::size_t>(last_)].runs_kernels |= runs_kernels;
      return last_;
    }
    const auto [place, is_new] = places_.try_emplace(key, static_cast<std::int32_t>(seen_.size()));
    if (is_new) seen_.push_back({key, false});
    last_ = place->second;
    seen_[static_cast<std::size_t>(last_)].runs_kernels |= runs_kernels;
    return last_;
  }

  // The GPU of each place. `by_process` is set where the recording does not say which GPU the only
  // device number of several processes stands for, so that each is taken to have its own.
  std::vector<std::int32_t> gpus(bool& by_process) const {
    std::vector<std::int32_t> gpus;
    const bool are_known =
        std::ranges::all_of(seen_, [this](const Seen& each) { return gpus_.contains(each.key); });
    by_process = !are_known && is_one_number_of_several_processes();
    std::int32_t next = 0;
    for (const Seen& each : seen_) {
      if (are_known)
        gpus.push_back(gpus_.at(each.key));
      else if (by_process)
        gpus.push_back(each.runs_kernels ? next++ : 0);
      else
        gpus.push_back(static_cast<std::int32_t>(each.key.second));
    }
    return gpus;
  }

 private:
  // Process and device.
  using Key = std::pair<std::int64_t, std::int64_t>;
  struct Seen {
    Key key;
    bool runs_kernels = false;
  };

  // A global number holds the thread in its lowest 24 bits, and the process in those above.
  static std::int64_t process_of(std::int64_t global_pid) { return (global_pid >> 24) & 0xFF'FFFF; }

  bool is_one_number_of_several_processes() const {
    std::set<std::int64_t> processes, devices;
    for (const Seen& each : seen_) {
      devices.insert(each.key.second);
      if (each.runs_kernels) processes.insert(each.key.first);
    }
    return devices.size() == 1 && processes.size() > 1;
  }

  std::map<Key, std::int32_t> gpus_, places_;
  std::vector<Seen> seen_;
  std::int32_t last_ = -1;
};

class NsysReader {
 public:
  NsysReader(const std::string& file, const std::string& source, const ReadingWatch& watch)
      : database_(file, source, watch), devices_(database_) {
    trace_.file = source;
    if (!database_.has("StringIds") && !database_.has("CUPTI_ACTIVITY_KIND_KERNEL"))
      throw InputError(source, {{"", "a database of something else", kExpectedExport}});
  }

  Trace read() {
    if (database_.has("StringIds"))
      database_.for_each("StringIds", "SELECT id, value FROM StringIds",
                         [this](const Row& row) { texts_.emplace(row.integer(0), row.text(1)); });
    if (texts_.empty())
      trace_.gaps.emplace_back(
          "It has no names (table StringIds), so that the kinds of kernels are not known.");
    if (!database_.has("CUPTI_ACTIVITY_KIND_KERNEL"))
      trace_.gaps.emplace_back("It has no kernels (table CUPTI_ACTIVITY_KIND_KERNEL).");
    reserve();
    read_kernels();
    read_graphs();
    read_memory("CUPTI_ACTIVITY_KIND_MEMCPY", ActivityKind::Copy);
    read_memory("CUPTI_ACTIVITY_KIND_MEMSET", ActivityKind::Fill);
    read_launches();
    read_ranges();
    read_session();
    number_devices();
    if (begin_ <= end_) {
      trace_.begin = begin_;
      trace_.end = end_;
    }
    link_to_host(trace_, std::move(record_));
    return std::move(trace_);
  }

 private:
  // Lists that grow step by step would need up to three times their size.
  void reserve() {
    std::size_t activities = 0;
    for (const char* table : kActivityTables) activities += database_.rows(table);
    trace_.activities.reserve(activities);
    record_.activities.reserve(activities);
    record_.launches.reserve(std::min(activities, database_.rows("CUPTI_ACTIVITY_KIND_RUNTIME")));
    record_.ops.reserve(database_.rows("NVTX_EVENTS"));
  }

  // Correlations are those of a process.
  static std::int64_t correlation_of(std::int64_t global_id, std::int64_t correlation) {
    return static_cast<std::int64_t>((static_cast<std::uint64_t>(global_id) >> kThreadBits)
                                     << 32U) ^
           correlation;
  }

  std::int32_t thread_of(std::int64_t global_id) {
    return record_.thread(
        process_of(global_id),
        static_cast<std::int64_t>(static_cast<std::uint64_t>(global_id) & kThreadMask));
  }

  // A column, or zeros where this version does not have it.
  std::string column(const std::string& table, const std::string& name) {
    return database_.has(table, name) ? name : "0";
  }

  void read_kernels() {
    const std::string table = "CUPTI_ACTIVITY_KIND_KERNEL";
    if (!database_.has(table)) return;
    const std::string query = fmt::format(
        "SELECT start, end, deviceId, streamId, correlationId, {}, {} * {} * {}, {}, {} FROM {}",
        column(table, "globalPid"), column(table, "gridX"), column(table, "gridY"),
        column(table, "gridZ"), column(table, "demangledName"), column(table, "shortName"), table);
    database_.for_each(table, query, [this](const Row& row) {
      auto name = texts_.find(row.integer(7));
      if (name == texts_.end()) name = texts_.find(row.integer(8));
      const std::string kernel = name == texts_.end() ? "unnamed kernel" : name->second;
      add_activity(row, ActivityKind::Kernel, kernel, category_of_kernel(kernel));
    });
  }

  // Graphs that were recorded as a whole count as kernels of a kind that is not known.
  void read_graphs() {
    if (!database_.has(kGraphs)) return;
    const std::string query =
        fmt::format("SELECT start, end, deviceId, streamId, correlationId, {}, 0 FROM {}",
                    column(kGraphs, "globalPid"), kGraphs);
    const std::size_t before = trace_.activities.size();
    database_.for_each(kGraphs, query, [this](const Row& row) {
      add_activity(row, ActivityKind::Kernel, "CUDA graph", KernelCategory::Other);
    });
    if (trace_.activities.size() > before)
      trace_.gaps.emplace_back(
          "It has CUDA graphs as a whole (table CUPTI_ACTIVITY_KIND_GRAPH_TRACE), so that their "
          "kernels are not known; nsys profile --cuda-graph-trace=node records these.");
  }

  void read_memory(const std::string& table, ActivityKind kind) {
    if (!database_.has(table)) return;
    const std::string query = fmt::format(
        "SELECT start, end, deviceId, streamId, correlationId, {}, {}, {} FROM {}",
        column(table, "globalPid"), column(table, "bytes"), column(table, "copyKind"), table);
    database_.for_each(table, query, [this, kind](const Row& row) {
      add_activity(row, kind, kind == ActivityKind::Copy ? copy_name(row.integer(7)) : "Memset",
                   KernelCategory::MemoryCopy);
    });
  }

  // CUPTI's CUpti_ActivityMemcpyKind.
  static const char* copy_name(std::int64_t kind) {
    if (kind == 1) return "Memcpy HtoD";
    if (kind == 2) return "Memcpy DtoH";
    if (kind == 8) return "Memcpy DtoD";
    if (kind == 10) return "Memcpy PtoP";
    return "Memcpy";
  }

  void add_activity(const Row& row, ActivityKind kind, std::string_view name,
                    KernelCategory category) {
    if (!is_usable(row.integer(0), row.integer(1))) {
      ++trace_.unusable_events;
      return;
    }
    note_time(row.integer(0), row.integer(1));
    DeviceActivity activity;
    activity.start = row.integer(0);
    activity.duration = row.integer(1) - row.integer(0);
    activity.device =
        devices_.place_of(row.integer(5), row.integer(2), kind == ActivityKind::Kernel);
    activity.stream = static_cast<std::int32_t>(row.integer(3));
    activity.kind = kind;
    activity.category = category;
    activity.name = trace_.names.index_of(name);
    activity.size = row.integer(6);
    trace_.activities.push_back(activity);
    record_.activities.push_back({correlation_of(row.integer(5), row.integer(4))});
  }

  void read_launches() {
    const std::string table = "CUPTI_ACTIVITY_KIND_RUNTIME";
    if (!database_.has(table)) return;
    const std::string query =
        fmt::format("SELECT start, end, globalTid, correlationId FROM {}", table);
    // Without the process of kernels, their correlations are those of the only process.
    const bool has_process = !database_.has("CUPTI_ACTIVITY_KIND_KERNEL") ||
                             database_.has("CUPTI_ACTIVITY_KIND_KERNEL", "globalPid");
    // Most calls launch nothing: of events, synchronisation, memory.
    std::vector<std::int64_t> launched;
    launched.reserve(record_.activities.size());
    for (const ActivityIds& each : record_.activities) launched.push_back(each.correlation);
    std::sort(launched.begin(), launched.end());
    database_.for_each(table, query, [&](const Row& row) {
      if (!is_usable(row.integer(0), row.integer(1))) return;
      note_time(row.integer(0), row.integer(1));
      const std::int64_t thread = row.integer(2);
      const std::int64_t correlation = correlation_of(has_process ? thread : 0, row.integer(3));
      if (std::binary_search(launched.begin(), launched.end(), correlation))
        record_.launches.push_back({row.integer(0), thread_of(thread), correlation});
    });
  }

  void read_ranges() {
    const std::string table = "NVTX_EVENTS";
    if (!database_.has(table)) return;
    const std::string query = fmt::format("SELECT start, end, globalTid, text, {} FROM {} WHERE {}",
                                          column(table, "textId"), table, kRanges);
    database_.for_each(table, query, [this](const Row& row) {
      if (!is_usable(row.integer(0), row.integer(1))) return;
      const auto stored = texts_.find(row.integer(4));
      const std::string_view text = row.text(3).empty() && stored != texts_.end()
                                        ? std::string_view(stored->second)
                                        : row.text(3);
      note_time(row.integer(0), row.integer(1));
      if (const auto number = step_number(text)) {
        record_.steps.push_back({{*number, row.integer(0), row.integer(1) - row.integer(0)},
                                 process_of(row.integer(2))});
        return;
      }
      if (is_optimizer_mark(text))
        record_.optimizers.push_back({thread_of(row.integer(2)), row.integer(0), row.integer(1)});
      HostOp op;
      op.start = row.integer(0);
      op.end = row.integer(1);
      op.thread = thread_of(row.integer(2));
      op.name = trace_.names.index_of(op_name(text));
      op.is_of_autograd = is_autograd_op(text);
      const std::string_view sizes = sizes_in(text);
      if (!sizes.empty() && category_of_op(op_name(text)) == KernelCategory::Gemm)
        op.shapes = trace_.names.index_of(fmt::format("[{}, []]", sizes));
      // PyTorch names the collective; the kernel below it may be a plain send and receive.
      if (text.starts_with("nccl:")) {
        trace_.collectives.push_back({});
        trace_.collectives.back().kind = collective_kind(op_name(text));
        op.collective = static_cast<TraceIndex>(trace_.collectives.size() - 1);
      }
      record_.ops.push_back(op);
    });
  }

  void number_devices() {
    bool by_process = false;
    const std::vector<std::int32_t> gpus = devices_.gpus(by_process);
    for (DeviceActivity& activity : trace_.activities)
      activity.device = gpus[static_cast<std::size_t>(activity.device)];
    if (by_process)
      trace_.gaps.emplace_back(
          "It does not say which GPU a device is (table TARGET_INFO_CUDA_DEVICE); its processes "
          "all "
          "use the same device number, and each counts as one with a GPU of its own.");
  }

  void read_session() {
    const std::string gpus = "TARGET_INFO_GPU", start = "TARGET_INFO_SESSION_START_TIME";
    if (database_.has(gpus, "name"))
      database_.for_each(gpus, fmt::format("SELECT name FROM {}", gpus), [this](const Row& row) {
        if (trace_.gpu.empty()) trace_.gpu = row.text(0);
      });
    if (database_.has(start, "utcEpochNs"))
      database_.for_each(start, fmt::format("SELECT utcEpochNs FROM {}", start),
                         [this](const Row& row) { trace_.clock_offset = row.integer(0); });
  }

  static bool is_usable(std::int64_t start, std::int64_t end) {
    return 0 <= start && start <= end && end <= kLatestTime;
  }

  void note_time(std::int64_t start, std::int64_t end) {
    begin_ = std::min(begin_, start);
    end_ = std::max(end_, end);
  }

  Database database_;
  DeviceNumbers devices_;
  Trace trace_;
  HostRecord record_;
  std::unordered_map<std::int64_t, std::string> texts_;
  std::int64_t begin_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t end_ = std::numeric_limits<std::int64_t>::min();
};

}  // namespace

Trace read_nsys(const std::string& file, const std::string& source, const ReadingWatch& watch) {
  return NsysReader(file, source, watch).read();
}

}  // namespace shardwright::calibration
