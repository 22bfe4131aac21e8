// Published timings of single kernels: rows of `gemm.jsonl`-like files
// (docs/formats/timing_rows.md).
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/program/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/stack_spec.hpp"
#include "sim/validation/measurement.hpp"
#include "sim/validation/timing_report.hpp"

namespace shardwright::sim {

// What ran and how long it took. Kernels of one timing run after each other.
struct KernelTiming {
  struct Kernel {
    OpKind kind = OpKind::Gemm;
    Work work;
    Seconds call;  // that the host takes for the framework's call around it; zero: not felt
  };

  std::string id, source;
  std::string gpu;          // as the source names it
  std::string accelerator;  // the shipped profile that stands for it; empty: there is none
  std::string op;           // "gemm bf16", "grouped_gemm bf16", "attention_fwd fp16", "memcpy"
  Precision precision = Precision::Bf16;
  std::vector<Kernel> kernels;
  StackSpec stack;  // how far the implementation is from the device's best
  Seconds measured;
  std::vector<std::string> filled_in;  // what was assumed: "dtype: bf16"
  std::string unsupported;             // why the row cannot be predicted; empty: it can
};

// A row that cannot be read is `unsupported`, with its problems. Throws InputError if none can be
// read, as `read_row_lines` does.
std::vector<KernelTiming> read_kernel_timings(const std::string& file);

// The same of a stream's lines; `source` names it in errors.
std::vector<KernelTiming> read_kernel_timings(std::istream& stream, const std::string& source);

// Typed rows. Throws InputError with all problems of the stream.
std::vector<KernelTiming> read_typed_kernels(std::istream& stream, const std::string& source);

// One line of a file.
nlohmann::ordered_json to_json(const KernelTiming& timing, const PublishedSource& source,
                               bool verified, const std::string& notes);

// Why the device cannot have run the timing's kernels, or not so fast; empty where it can.
// `accelerator` is none where no shipped profile stands for the device.
std::string gap_of(const KernelTiming& timing, const std::optional<AcceleratorSpec>& accelerator);

// The shipped profile of this name at the clock of a short benchmark, whose `sustained_clock_ratio`
// is 1. None without a name.
std::optional<AcceleratorSpec> benchmarked_accelerator(const std::string& profile);

// By the formulas, whatever was measured.
Seconds predict(const KernelTiming& timing, const AcceleratorSpec& accelerator);

// Predicts every row of the file with shipped profiles; rows without one, rows that do not say
// enough and rows that cannot be read are skipped with their reason.
TimingReport validate_kernels(const std::string& file);

}  // namespace shardwright::sim
