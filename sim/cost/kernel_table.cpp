// Kernel tables as CSV.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <istream>
#include <map>
#include <ostream>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/nearest_name.hpp"
#include "core/base/untrusted_file.hpp"
#include "sim/cost/measured_kernels.hpp"

namespace shardwright::sim {
namespace {

constexpr const char* kColumns =
    "op,precision,m,n,k,batch,groups,groups_share_k,accumulate_fp32,heads,kv_heads,q_tokens,"
    "kv_tokens,qk_head_dim,v_head_dim,score_share_ratio,backward,read_bytes,written_bytes,kernels,"
    "time_s";

// The length of a line in bytes beyond which it is refused.
constexpr std::size_t kLongestLine = 1 << 16;
constexpr std::size_t kMostBadLines = 100;
// Products of two sizes are integers too up to this one.
constexpr double kLargestSize = 1e9;

std::vector<std::string> cells_of(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == ',')
      cells.emplace_back();
    else
      cells.back() += c;
  }
  return cells;
}

// A cell for an error message.
std::string quoted(const std::string& cell) {
  constexpr std::size_t kLimit = 60;
  if (cell.empty()) return "nothing";
  return fmt::format("\"{}{}\"", cell.substr(0, kLimit), cell.size() > kLimit ? "..." : "");
}

// One line of a table, by the header's names.
class RowReader {
 public:
  RowReader(const std::vector<std::string>& header, const std::vector<std::string>& cells,
            std::string line, ProblemList& problems)
      : header_(&header), cells_(&cells), line_(std::move(line)), problems_(&problems) {}

  std::string text(const std::string& column) const {
    for (std::size_t i = 0; i < header_->size() && i < cells_->size(); ++i)
      if ((*header_)[i] == column) return (*cells_)[i];
    return "";
  }

  double number(const std::string& column, double fallback, double least, double most) const {
    const std::string cell = text(column);
    if (cell.empty() && fallback >= least) return fallback;
    double value = 0.0;
    const char* end = cell.data() + cell.size();
    const auto [rest, error] = std::from_chars(cell.data(), end, value);
    if (error == std::errc() && rest == end && value >= least && value <= most) return value;
    problem(column, cell, fmt::format("a number of at least {} and at most {}", least, most));
    return least;
  }

  std::int64_t integer(const std::string& column, double fallback = 0.0) const {
    const double value = number(column, fallback, 1.0, kLargestSize);
    if (value != static_cast<double>(static_cast<std::int64_t>(value)))
      problem(column, text(column), "a whole number");
    return static_cast<std::int64_t>(value);
  }

  bool flag(const std::string& column) const { return number(column, 0.0, 0.0, 1.0) > 0.5; }

  void problem(const std::string& column, const std::string& found,
               const Expected& expected) const {
    problems_->add(fmt::format("{}/{}", line_, column), quoted(found), expected);
  }

 private:
  const std::vector<std::string>* header_;
  const std::vector<std::string>* cells_;
  std::string line_;
  ProblemList* problems_;
};

template <class E>
E choice(const RowReader& row, const std::string& column, int first, int end) {
  const std::string text = row.text(column);
  std::vector<std::string> names;
  for (int i = first; i < end; ++i) {
    names.emplace_back(name_of(static_cast<E>(i)));
    if (names.back() == text) return static_cast<E>(i);
  }
  row.problem(column, text, one_of(text, names));
  return static_cast<E>(first);
}

GemmWork read_gemm(const RowReader& row) {
  GemmWork work{.m = row.integer("m"), .n = row.integer("n"), .k = row.integer("k")};
  work.batch = row.integer("batch", 1);
  work.groups = row.integer("groups", 1);
  work.groups_share_k = row.flag("groups_share_k");
  work.accumulate_fp32 = row.flag("accumulate_fp32");
  return work;
}

AttentionWork read_attention(const RowReader& row) {
  AttentionWork work;
  work.batch = row.integer("batch", 1);
  work.heads = row.integer("heads");
  work.kv_heads = row.integer("kv_heads", static_cast<double>(work.heads));
  work.q_tokens = row.integer("q_tokens");
  work.kv_tokens = row.integer("kv_tokens", static_cast<double>(work.q_tokens));
  work.qk_head_dim = row.integer("qk_head_dim");
  work.v_head_dim = row.integer("v_head_dim", static_cast<double>(work.qk_head_dim));
  work.score_share = row.number("score_share_ratio", 1.0, 1e-9, 1.0);
  work.backward = row.flag("backward");
  return work;
}

MemoryWork read_memory(const RowReader& row) {
  MemoryWork work;
  work.read = Bytes(row.number("read_bytes", 0.0, 0.0, 1e15));
  work.written = Bytes(row.number("written_bytes", 0.0, 0.0, 1e15));
  work.kernels = row.integer("kernels", 1);
  return work;
}

MeasuredKernel read_kernel(const RowReader& row) {
  MeasuredKernel kernel;
  kernel.kind = choice<OpKind>(row, "op", 0, static_cast<int>(OpKind::Offload));
  kernel.precision = choice<Precision>(row, "precision", 0, static_cast<int>(kPrecisions.size()));
  if (kernel.kind <= OpKind::GroupedGemm)
    kernel.work = read_gemm(row);
  else if (kernel.kind == OpKind::Attention)
    kernel.work = read_attention(row);
  else
    kernel.work = read_memory(row);
  kernel.time = Seconds(row.number("time_s", 0.0, 1e-9, 1e6));
  return kernel;
}

void check_header(const std::vector<std::string>& header, ProblemList& problems) {
  const std::vector<std::string> known = cells_of(kColumns);
  for (auto name = header.begin(); name != header.end(); ++name) {
    if (std::find(known.begin(), known.end(), *name) == known.end())
      problems.add("line 1", quoted(*name), one_of(*name, known));
    else if (std::find(header.begin(), name, *name) != name)
      problems.add("line 1", quoted(*name) + " again", "each column once");
  }
  for (const char* required : {"op", "precision", "time_s"}) {
    if (std::find(header.begin(), header.end(), required) == header.end())
      problems.add("line 1", "a header without it", fmt::format("the column \"{}\"", required));
  }
}

bool is_control(char c) {
  return c >= 0 && c < ' ' && c != '\t' && c != '\r';
}

// The next line; false behind the last one. Throws at what is no text, and at a line that is too
// long.
bool next_line(std::istream& stream, const std::string& source, std::size_t number,
               std::string& line) {
  const LineRead read = read_bounded_line(stream, kLongestLine, line);
  const bool binary = std::any_of(line.begin(), line.end(), is_control);
  if (binary || read == LineRead::TooLong) {
    throw InputError(source,
                     {{fmt::format("line {}", number),
                       binary ? "binary data" : fmt::format("more than {} bytes", kLongestLine),
                       "a table of kernels as CSV"}});
  }
  return read == LineRead::Whole;
}

std::string work_cells(const Work& work) {
  if (const auto* gemm = std::get_if<GemmWork>(&work)) {
    return fmt::format("{},{},{},{},{},{},{},,,,,,,,,,,", gemm->m, gemm->n, gemm->k, gemm->batch,
                       gemm->groups, gemm->groups_share_k ? 1 : 0, gemm->accumulate_fp32 ? 1 : 0);
  }
  if (const auto* attention = std::get_if<AttentionWork>(&work)) {
    return fmt::format(",,,{},,,,{},{},{},{},{},{},{},{},,,", attention->batch, attention->heads,
                       attention->kv_heads, attention->q_tokens, attention->kv_tokens,
                       attention->qk_head_dim, attention->v_head_dim, attention->score_share,
                       attention->backward ? 1 : 0);
  }
  const auto& memory = std::get<MemoryWork>(work);
  return fmt::format(",,,,,,,,,,,,,,,{},{},{}", memory.read.value(), memory.written.value(),
                     memory.kernels);
}

// All cells of a kernel but its time.
std::string shape_cells(const MeasuredKernel& kernel) {
  return fmt::format("{},{},{}", name_of(kernel.kind), name_of(kernel.precision),
                     work_cells(kernel.work));
}

// Throws InputError with the problems of the row.
MeasuredKernel read_row(const std::vector<std::string>& header, const std::string& text,
                        const std::string& source, const std::string& line) {
  const std::vector<std::string> cells = cells_of(text);
  ProblemList problems(source);
  if (cells.size() != header.size()) {
    problems.add(line, fmt::format("{} cells", cells.size()),
                 fmt::format("{}, as in the header", header.size()));
    problems.throw_if_any();
  }
  const MeasuredKernel kernel = read_kernel(RowReader(header, cells, line, problems));
  problems.throw_if_any();
  return kernel;
}

}  // namespace

std::vector<MeasuredKernel> read_kernel_table(const std::string& file) {
  if (std::filesystem::is_directory(file))
    throw InputError(file, {{"", "a folder", "a table of kernels as CSV"}});
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw InputError(file, {{"", "no such readable file", "a table of kernels as CSV"}});
  return read_kernel_table(stream, file);
}

std::vector<MeasuredKernel> read_kernel_table(std::istream& stream, const std::string& source) {
  ProblemList problems(source);
  std::string text;
  if (!next_line(stream, source, 1, text))
    throw InputError(source, {{"", "an empty file", "a table of kernels as CSV"}});
  const std::vector<std::string> header = cells_of(text);
  check_header(header, problems);
  problems.throw_if_any();
  std::vector<MeasuredKernel> kernels;
  // The line of each shape.
  std::map<std::string, std::size_t> line_of;
  std::size_t bad_lines = 0;
  for (std::size_t number = 2; next_line(stream, source, number, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string line = fmt::format("line {}", number);
    try {
      kernels.push_back(read_row(header, text, source, line));
      const auto [first, is_new] = line_of.try_emplace(shape_cells(kernels.back()), number);
      if (!is_new)
        throw InputError(source, {{line, fmt::format("the shape of line {} again", first->second),
                                   "each shape once"}});
    } catch (const InputError& error) {
      problems.add_all("", error);
      if (++bad_lines == kMostBadLines) break;
    }
  }
  problems.throw_if_any();
  return kernels;
}

void write_kernel_table(std::ostream& stream, const std::vector<MeasuredKernel>& kernels) {
  stream << kColumns << '\n';
  for (const MeasuredKernel& kernel : kernels) {
    stream << fmt::format("{},{}\n", shape_cells(kernel), kernel.time.value());
  }
}

}  // namespace shardwright::sim
