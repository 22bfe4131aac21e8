// Kernel tables as CSV.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <ostream>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/nearest_name.hpp"
#include "sim/cost/measured_kernels.hpp"

namespace shardwright::sim {
namespace {

constexpr const char* kColumns =
    "op,precision,m,n,k,batch,groups,groups_share_k,accumulate_fp32,heads,kv_heads,q_tokens,"
    "kv_tokens,qk_head_dim,v_head_dim,score_share_ratio,backward,read_bytes,written_bytes,kernels,"
    "time_s";

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
    const double value = number(column, fallback, 1.0, 1e12);
    if (value != static_cast<double>(static_cast<std::int64_t>(value)))
      problem(column, text(column), "a whole number");
    return static_cast<std::int64_t>(value);
  }

  bool flag(const std::string& column) const { return number(column, 0.0, 0.0, 1.0) > 0.5; }

  void problem(const std::string& column, const std::string& found,
               const std::string& expected) const {
    problems_->add(fmt::format("{}/{}", line_, column),
                   found.empty() ? "nothing" : fmt::format("\"{}\"", found), expected);
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
  for (const std::string& name : header) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      problems.add("line 1", fmt::format("\"{}\"", name), one_of(name, known));
  }
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

}  // namespace

std::vector<MeasuredKernel> read_kernel_table(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) throw InputError(file, {{"", "no such readable file", "a table of kernels as CSV"}});
  ProblemList problems(file);
  std::string text;
  std::getline(stream, text);
  const std::vector<std::string> header = cells_of(text);
  check_header(header, problems);
  problems.throw_if_any();
  std::vector<MeasuredKernel> kernels;
  for (std::size_t number = 2; std::getline(stream, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::vector<std::string> cells = cells_of(text);
    const std::string line = fmt::format("line {}", number);
    if (cells.size() != header.size()) {
      problems.add(line, fmt::format("{} cells", cells.size()),
                   fmt::format("{}, as in the header", header.size()));
      continue;
    }
    kernels.push_back(read_kernel(RowReader(header, cells, line, problems)));
  }
  problems.throw_if_any();
  return kernels;
}

void write_kernel_table(std::ostream& stream, const std::vector<MeasuredKernel>& kernels) {
  stream << kColumns << '\n';
  for (const MeasuredKernel& kernel : kernels) {
    stream << fmt::format("{},{},{},{}\n", name_of(kernel.kind), name_of(kernel.precision),
                          work_cells(kernel.work), kernel.time.value());
  }
}

}  // namespace shardwright::sim
