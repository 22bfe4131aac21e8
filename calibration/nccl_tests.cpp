#include "calibration/nccl_tests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "calibration/nccl_inspector.hpp"
#include "calibration/traces/inflated_file.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/quantity_text.hpp"

namespace shardwright::calibration {
namespace {

constexpr std::pair<const char*, OpKind> kPrograms[] = {
    {"all_reduce", OpKind::AllReduce},         {"all_gather", OpKind::AllGather},
    {"reduce_scatter", OpKind::ReduceScatter}, {"alltoall", OpKind::AllToAll},
    {"broadcast", OpKind::Broadcast},          {"sendrecv", OpKind::Send}};
constexpr const char* kKnownPrograms =
    "all_reduce, all_gather, reduce_scatter, alltoall, broadcast or sendrecv";

// The kind that a program or a file's name begins with or holds.
std::optional<OpKind> collective_in(std::string_view text) {
  for (const auto& [name, kind] : kPrograms)
    if (text.find(name) != std::string_view::npos) return kind;
  return std::nullopt;
}

// True of "all_reduce_perf", and of "all_reduce_perf_mpi", as which NVIDIA's containers have it
// (NAME_SUFFIX of github.com/NVIDIA/nccl-tests, src/Makefile).
bool is_program(std::string_view name) {
  constexpr std::string_view kMark = "_perf";
  const std::size_t mark = name.find(kMark);
  if (mark == std::string_view::npos || mark == 0) return false;
  const std::size_t end = mark + kMark.size();
  return (end == name.size() || name[end] == '_') &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

// "all_reduce_perf" of "+ mpirun -np 8 '/opt/nccl-tests/build/all_reduce_perf' -b 8": the first
// word that is a program of nccl-tests, without its folder; empty without one.
std::string program_in(const std::string& line) {
  constexpr std::string_view kAround = "\"'`,.;:";
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    word.erase(word.find_last_not_of(kAround) + 1);
    const std::string program = word.substr(word.find_last_of("/\"'`") + 1);
    if (is_program(program)) return program;
  }
  return "";
}

struct Device {
  // Empty where the output does not say it.
  std::string host;
  // NCCL_TESTS_SPLIT makes several groups, which run at the same time.
  std::int64_t group = 0;
};

struct Output {
  // "all_reduce_perf"; empty where the output does not say it.
  std::string program;
  // Devices by rank.
  std::map<std::int64_t, Device> devices;
  // The number of ranks that a device of the list stands for.
  std::int64_t ranks_each = 1;
  // Bytes and microseconds.
  std::vector<std::pair<double, double>> rows;
  bool has_wrong_data = false;
};

constexpr IntegerRange kRankNumbers{0, 10'000'000};

constexpr const char* kExpected =
    "the output of nccl-tests, as it is printed or as -J writes it; of a run its folder; a trace "
    "refits a profile by shardwright import FILE --cluster CLUSTER --out FOLDER";

using Words = std::vector<std::string>;

Words words_of(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::optional<double> number_in(const std::string& word) {
  std::istringstream stream(word);
  double value = 0.0;
  if (stream >> value && stream.eof()) return value;
  return std::nullopt;
}

// The places of the out-of-place times in rows, by the line that names the columns.
struct Columns {
  std::size_t all = 0;
  // The first column of that name.
  std::size_t time = 0;
  // A column that a row may leave blank.
  std::optional<std::size_t> redop;
};

// "size  count  type  redop  root  time  algbw  …": older programs have no root, or no redop
// either.
std::optional<Columns> columns_named(const Words& names, const std::string& where,
                                     ProblemList& problems) {
  const auto time = std::find(names.begin(), names.end(), "time");
  if (time == names.end()) {
    problems.add(where, fmt::format("the columns {}", fmt::join(names, ", ")),
                 "one named \"time\", in microseconds");
    return std::nullopt;
  }
  Columns columns{names.size(), static_cast<std::size_t>(time - names.begin()), std::nullopt};
  const auto redop = std::find(names.begin(), time, "redop");
  if (redop != time) columns.redop = static_cast<std::size_t>(redop - names.begin());
  return columns;
}

// Within the limits of what -J writes.
bool is_figure(double value) {
  return value >= kNonNegative.least && value <= kNonNegative.most;
}

// "  1048576  262144  float  sum  -1  45.2  23.2  43.5  0  …". Older programs print nothing for the
// redop of what reduces nothing. False, with a problem, for what does not stand under the columns.
bool read_row(const Words& words, const Columns& columns, const std::string& where,
              ProblemList& problems, Output& output) {
  // No redop is a number, and all that follow it are.
  const bool is_blank = columns.redop && *columns.redop < words.size() &&
                        number_in(words[*columns.redop]).has_value();
  const std::size_t blank = is_blank ? 1 : 0;
  if (words.size() + blank < columns.all) {
    problems.add(
        where, fmt::format("a row of {} columns", words.size()),
        is_blank ? fmt::format("{}, as the line above names but for the redop", columns.all - blank)
                 : fmt::format("{}, as the line above names", columns.all));
    return false;
  }
  const std::string& time = words[columns.time - blank];
  const std::optional<double> value = number_in(time);
  const double bytes = number_in(words.front()).value_or(0.0);
  if (!value || !is_figure(*value)) {
    problems.add(where, fmt::format("the time \"{}\"", time),
                 fmt::format("a number of microseconds, at most {:g}", kNonNegative.most));
    return false;
  }
  if (!is_figure(bytes)) {
    problems.add(where, fmt::format("the size \"{}\"", words.front()),
                 fmt::format("a number of bytes, at most {:g}", kNonNegative.most));
    return false;
  }
  output.rows.emplace_back(bytes, *value);
  return true;
}

void add_device(std::int64_t rank, const Device& device, const std::string& where,
                ProblemList& problems, Output& output) {
  const auto [known, is_new] = output.devices.try_emplace(rank, device);
  if (is_new || known->second.host == device.host) return;
  problems.add(where, fmt::format("rank {} on {}", rank, device.host),
               fmt::format("the output of one run, where it is on {}", known->second.host));
}

// "Rank  0 Group  0 Pid   9973 on  host-1 device  0 [0x07] NVIDIA H100"; older ones have no group.
void read_device(const std::string& text, const std::string& where, ProblemList& problems,
                 Output& output) {
  std::istringstream words(text);
  std::string word, number;
  words >> word >> number;
  const std::optional<double> rank = number_in(number);
  if (!rank) return;
  if (!(*rank >= kRankNumbers.least && *rank <= kRankNumbers.most)) {
    problems.add(where, fmt::format("rank {}", number),
                 fmt::format("one from {} to {}", kRankNumbers.least, kRankNumbers.most));
    return;
  }
  Device device;
  while (words >> word && word != "device") {
    if (word == "Group") words >> device.group;
    if (word == "on") words >> device.host;
  }
  add_device(static_cast<std::int64_t>(*rank), device, where, problems, output);
}

// Where a label ends that begins a line: "[1,0]<stdout>:" (mpirun), "0:" (srun), "node1:",
// "[node-1:0]:", "2025-10-01T10:00:00.000"; 0 without one.
std::size_t end_of_label(std::string_view line) {
  constexpr std::string_view kBlanks = " \t", kDigits = "0123456789";
  const std::size_t end = std::min(line.find_first_of(kBlanks), line.size());
  if (line.empty()) return 0;
  if (end > 0 && line[end - 1] == ':') return end;
  if (line.front() == '[') {
    const std::size_t bracket = line.find(']');
    if (bracket == std::string_view::npos) return 0;
    const std::size_t colon = line.find(':', bracket);
    return colon < std::max(end, bracket) ? colon + 1 : bracket + 1;
  }
  const std::size_t number = line.find_first_not_of(kDigits);
  if (number == 0 || number == std::string_view::npos) return 0;
  if (line[number] == ':' &&
      line.substr(number, end - number).find(':', 1) == std::string_view::npos)
    return number + 1;
  const bool is_time =
      (line[number] == '-' || line[number] == ':') &&
      line.substr(0, end).find_first_not_of("0123456789-:.,TZ+") == std::string_view::npos;
  return is_time ? end : 0;
}

// A line without what launchers and shells write before those of a rank.
std::string without_labels(std::string_view line) {
  for (;;) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const std::size_t end = end_of_label(line);
    if (end == 0) return std::string(line);
    line.remove_prefix(end);
  }
}

// Reads the printed lines of one or several tests one by one. Of a table's rows that cannot be read
// the first one is a problem, and those after it are left out.
class TableReader {
 public:
  explicit TableReader(ProblemList& problems) : problems_(problems) {}

  void read(const std::string& labelled) {
    where_ = fmt::format("line {}", ++lines_);
    const std::string line = without_labels(labelled);
    if (line.empty()) return;
    if (line.front() == '#') return read_comment(line.substr(1));
    // A shell, a launcher or a job's script has printed the command of the test that follows.
    std::string program = program_in(line);
    if (!program.empty()) {
      next_program_ = std::move(program);
    } else {
      read_timing(words_of(line));
    }
  }

  // True if a line was one of nccl-tests.
  bool is_table() const { return is_table_; }

  // The tests that have rows, or the last one.
  std::vector<Output> take() {
    tests_.push_back(std::move(output_));
    if (std::ranges::any_of(tests_, [](const Output& test) { return !test.rows.empty(); }))
      std::erase_if(tests_, [](const Output& test) { return test.rows.empty(); });
    else
      tests_.erase(tests_.begin(), tests_.end() - 1);
    return std::move(tests_);
  }

 private:
  // What follows belongs to another test if the present one has rows.
  void begin_test() {
    if (!output_.rows.empty() || is_broken_) {
      tests_.push_back(std::exchange(output_, {}));
      columns_.reset();
      is_broken_ = false;
    }
    if (output_.program.empty()) output_.program = std::exchange(next_program_, {});
  }

  void read_comment(const std::string& text) {
    const bool starts = text.find("Collective test starting") != std::string::npos;
    if (starts || text.find("nThread ") != std::string::npos) begin_test();
    if (starts || text.find("Collective test concluded") != std::string::npos) {
      const std::string program = program_in(text);
      if (!program.empty()) output_.program = program;
      is_table_ = is_table_ || !program.empty();
    }
    // "Out of bounds values : 14 FAILED"
    if (text.find("Out of bounds values") != std::string::npos)
      output_.has_wrong_data = text.find("FAILED") != std::string::npos;
    const std::size_t rank = text.find("Rank ");
    if (rank != std::string::npos) read_device(text.substr(rank), where_, problems_, output_);
    is_table_ = is_table_ || !output_.devices.empty();
    const Words words = words_of(text);
    if (words.size() < 2 || words[0] != "size" || words[1] != "count") return;
    if (output_.program.empty()) output_.program = std::exchange(next_program_, {});
    columns_ = columns_named(words, where_, problems_);
    is_broken_ = !columns_;
    is_table_ = true;
  }

  void read_timing(const Words& words) {
    if (is_broken_ || words.size() < 2 || !number_in(words[0]) || !number_in(words[1])) return;
    if (columns_) {
      is_broken_ = !read_row(words, *columns_, where_, problems_, output_);
      return;
    }
    problems_.add(where_, "a row without names of columns above it",
                  "the line \"# size count type … time algbw busbw …\" of the table before it");
    is_broken_ = true;
    is_table_ = true;
  }

  ProblemList& problems_;
  // The tests before the present one, and this one.
  std::vector<Output> tests_;
  Output output_;
  // A program whose command a line has shown.
  std::string next_program_;
  std::optional<Columns> columns_;
  bool is_broken_ = false;
  bool is_table_ = false;
  std::int64_t lines_ = 0;
  std::string where_;
};

std::vector<Output> read_text(std::istream& stream, ProblemList& problems) {
  TableReader reader(problems);
  for (std::string line; std::getline(stream, line);) reader.read(line);
  if (!reader.is_table()) problems.add("", "text without a table of nccl-tests", kExpected);
  return reader.take();
}

constexpr std::size_t kMostBytes = 64ULL << 20;

// Returns up to so many bytes of a file.
std::string beginning_of(const std::string& file, std::size_t most) {
  const ByteSource bytes = open_inflated(file, kExpected);
  std::string content(most, '\0');
  std::size_t size = 0;
  while (size < most) {
    const std::size_t more = bytes(content.data() + size, most - size);
    if (more == 0) break;
    size += more;
  }
  content.resize(size);
  return content;
}

// The whole file, as what it prints is small.
std::string content_of(const std::string& file) {
  if (std::filesystem::is_directory(file)) throw InputError(file, {{"", "a folder", kExpected}});
  std::string content = beginning_of(file, kMostBytes + 1);
  if (content.size() > kMostBytes)
    throw InputError(file, {{"", fmt::format("more than {} bytes", kMostBytes), kExpected}});
  return content;
}

// The number of ranks that each listed device stands for: -J lists only the first device of a
// process with several (github.com/NVIDIA/nccl-tests, src/util.cu, parseRankInfo).
std::int64_t ranks_of_each(const Output& output, ObjectReader& config) {
  constexpr IntegerRange kOfProcess{1, 1024};
  const std::int64_t of_process =
      config.integer_or("nthreads", 1, kOfProcess) * config.integer_or("ngpus", 1, kOfProcess);
  const bool first_alone =
      std::all_of(output.devices.begin(), output.devices.end(),
                  [&](const auto& device) { return device.first % of_process == 0; });
  return first_alone ? of_process : 1;
}

// Text that is no JSON as a whole may be the lines of a run's metrics.
nlohmann::json parse_output(const std::string& text, const std::string& file) {
  try {
    return parse_json(text, file);
  } catch (const InputError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) problem.expected.text += fmt::format(": {}", kExpected);
    throw InputError(file, problems);
  }
}

// Refuses JSON of another program.
void refuse_other_json(ObjectReader& object, ProblemList& problems) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> keys = object.keys();
  const bool more = keys.size() > kShown;
  keys.resize(std::min(keys.size(), kShown));
  for (std::string& key : keys) key = shown(key);
  problems.add("",
               keys.empty()
                   ? "a JSON object without keys"
                   : fmt::format("a JSON object with the key{} {}{}", keys.size() > 1 ? "s" : "",
                                 fmt::join(keys, ", "), more ? ", …" : ""),
               kExpected);
}

Output read_json(const nlohmann::json& document, ProblemList& problems) {
  ObjectReader object(document, "", problems);
  Output output;
  if (!object.peek("args") && !object.peek("config") && !object.peek("results")) {
    refuse_other_json(object, problems);
    return output;
  }
  for (const std::string& argument : object.texts("args")) {
    if (output.program.empty()) output.program = program_in(argument);
  }
  ObjectReader config = object.object("config");
  for (ObjectReader& device : config.objects("devices")) {
    const std::int64_t rank = device.integer("rank", kRankNumbers);
    constexpr IntegerRange kGroups{std::numeric_limits<std::int32_t>::min(),
                                   std::numeric_limits<std::int32_t>::max()};
    add_device(rank, {device.text_or("hostname", ""), device.integer_or("group", 0, kGroups)},
               device.pointer(), problems, output);
  }
  output.ranks_each = ranks_of_each(output, config);
  for (ObjectReader& row : object.objects("results")) {
    ObjectReader timing = row.object("out_of_place");
    output.rows.emplace_back(row.number("size", kNonNegative), timing.number("time", kNonNegative));
  }
  return output;
}

// The group whose times are printed: that of the first rank.
struct TimedGroup {
  // The number of ranks on each host.
  std::map<std::string, std::int64_t> ranks_on;
  std::int64_t members = 0;
  HostSpread spread;
};

std::int64_t most_in(const std::map<std::string, std::int64_t>& counts) {
  std::int64_t most = 0;
  for (const auto& [host, count] : counts) most = std::max(most, count);
  return most;
}

TimedGroup timed_group(const Output& output) {
  TimedGroup group;
  if (output.devices.empty()) return group;
  const std::int64_t timed = output.devices.begin()->second.group;
  std::set<std::pair<std::string, std::int64_t>> groups_on;
  std::map<std::string, std::int64_t> groups;
  for (const auto& [rank, device] : output.devices) {
    if (groups_on.insert({device.host, device.group}).second) ++groups[device.host];
    if (device.group != timed) continue;
    group.ranks_on[device.host] += output.ranks_each;
    group.members += output.ranks_each;
  }
  group.spread = {static_cast<std::int64_t>(group.ranks_on.size()), most_in(groups)};
  return group;
}

// Each rank of sendrecv sends to the next one, the last to the first: the messages that leave the
// host which most of them leave.
std::int64_t messages_leaving(const Output& output) {
  const std::int64_t timed = output.devices.begin()->second.group;
  std::vector<std::string> hosts;
  for (const auto& [rank, device] : output.devices)
    if (device.group == timed) hosts.push_back(device.host);
  std::map<std::string, std::int64_t> leaving;
  for (std::size_t i = 0; i < hosts.size(); ++i)
    if (hosts[i] != hosts[(i + 1) % hosts.size()]) ++leaving[hosts[i]];
  return std::max<std::int64_t>(1, most_in(leaving));
}

void check_group(const TimedGroup& group, bool pairs, ProblemList& problems) {
  if (group.members < 2)
    problems.add("", fmt::format("{} of a device", format_plural(group.members, "line")),
                 "at least 2 lines like \"#  Rank  0 Group  0 Pid  4711 on node1 device  0 [0x00] "
                 "NVIDIA H100\"");
  const auto by_ranks = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [fewest, most] =
      std::minmax_element(group.ranks_on.begin(), group.ranks_on.end(), by_ranks);
  if (pairs || group.ranks_on.empty() || fewest->second == most->second) return;
  problems.add("",
               fmt::format("ranks: {} on {}, {} on {}", fewest->second, fewest->first, most->second,
                           most->first),
               "as many on each host");
}

void add_timings(const Output& output, OpKind kind, ProblemList& problems, NcclTimings& timings) {
  TimedGroup group = timed_group(output);
  const bool pairs = kind == OpKind::Send;
  check_group(group, pairs, problems);
  if (!problems.empty()) return;
  if (pairs) {
    group.members = 2;
    group.spread.groups_per_host *= messages_leaving(output);
  }
  for (const auto& [bytes, time] : output.rows) {
    if (bytes == 0.0 || time == 0.0) {
      ++timings.empty_rows;
      continue;
    }
    timings.samples.push_back(
        {kind, group.members, 1, Bytes(bytes), microseconds(time), group.spread});
  }
}

NcclTimings timings_of_tests(const std::vector<Output>& tests, ProblemList& problems) {
  NcclTimings timings;
  for (const Output& test : tests) {
    const std::optional<OpKind> kind = collective_in(test.program);
    if (kind && test.rows.empty()) problems.add("", "no timings", "rows of sizes and times");
    if (kind) add_timings(test, *kind, problems, timings);
    timings.has_wrong_data = timings.has_wrong_data || test.has_wrong_data;
    if (!kind && !test.program.empty()) timings.left_out.insert(test.program);
    if (test.program.empty())
      problems.add("", "no name of a collective",
                   fmt::format("one in the output of each test or, of one test, in the file's "
                               "name: {}",
                               kKnownPrograms));
  }
  if (timings.samples.empty() && timings.empty_rows == 0 && !timings.left_out.empty())
    problems.add("", fmt::format("{} alone", fmt::join(timings.left_out, ", ")), kKnownPrograms);
  return timings;
}

}  // namespace

std::string head_of_timings(const std::string& file) {
  // NCCL's own messages may stand before the table.
  constexpr std::size_t kHead = 64U << 10U;
  try {
    return beginning_of(file, kHead);
  } catch (const InputError&) {
    return "";
  }
}

NcclTimings read_nccl_tests(const std::string& file) {
  if (is_inspector_output(head_of_timings(file)))
    return {samples_of(read_inspector(file), file), 0};
  return parse_nccl_tests(content_of(file), file);
}

NcclTimings parse_nccl_tests(const std::string& text, const std::string& file) {
  if (text.find('\0') != std::string::npos)
    throw InputError(file, {{"", "binary data", kExpected}});
  constexpr std::size_t kHead = 4096;
  if (is_inspector_output(std::string_view(text).substr(0, kHead)))
    return {samples_of(parse_inspector(text, file), file), 0};
  std::istringstream stream(text);
  ProblemList problems(file);
  const int first = (stream >> std::ws).peek();
  if (first == std::istringstream::traits_type::eof())
    throw InputError(file, {{"", text.empty() ? "an empty file" : "blank lines", kExpected}});
  const bool json = first == '{';
  stream.clear();
  // Lines are counted from the first one.
  stream.seekg(0);
  std::vector<Output> tests = json ? std::vector{read_json(parse_output(text, file), problems)}
                                   : read_text(stream, problems);
  problems.throw_if_any();
  if (tests.size() == 1 && tests.front().program.empty()) {
    const std::string name = std::filesystem::path(file).filename().string();
    if (collective_in(name)) tests.front().program = name;
  }
  NcclTimings timings = timings_of_tests(tests, problems);
  problems.throw_if_any();
  return timings;
}

}  // namespace shardwright::calibration
