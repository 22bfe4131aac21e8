// Output of nccl-tests (github.com/NVIDIA/nccl-tests): the table that it prints, or the file that
// -J writes; or output of NCCL's Inspector (nccl_inspector.hpp); plain or compressed with gzip.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "calibration/nccl_inspector.hpp"
#include "core/spec/exchange_sample.hpp"

namespace shardwright::calibration {

struct NcclTimings {
  std::vector<ExchangeSample> samples;
  // Rows of nothing to carry, and those whose time the program has rounded to 0.00: both say
  // nothing.
  std::int64_t empty_rows = 0;
  // Programs that time what no plan uses, such as reduce_perf.
  std::set<std::string> left_out{};
  // True if nccl-tests found wrong data.
  bool has_wrong_data = false;
};

// The out-of-place timings, one for each size of each test. The collective is read from the line
// "Collective test starting" or "Collective test concluded", a line with the command, the arguments
// in JSON, or else, of one test, the name of the file; the columns from the line that names them,
// which differs among versions; ranks and hosts from the list of devices, in which a device without
// a host is on the same one as others without. Throws InputError with what is missing, a row that
// does not fit its columns or has a negative size or time, and ranks that lie unevenly on hosts.
NcclTimings read_nccl_tests(const std::string& file);

// Parses the file's text.
NcclTimings parse_nccl_tests(const std::string& text, const std::string& file);

// The first bytes of a file, inflated where gzip compressed it; empty if it cannot be read.
std::string head_of_timings(const std::string& file);

}  // namespace shardwright::calibration
