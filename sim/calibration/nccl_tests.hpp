// Output of nccl-tests (github.com/NVIDIA/nccl-tests): the table that it prints, or the file that
// -J writes.
#pragma once

#include <string>
#include <vector>

#include "core/spec/exchange_sample.hpp"

namespace shardwright::sim {

// The out-of-place timings, one for each size. The collective is read from the line "Collective
// test starting", the arguments in JSON, or else the name of the file; the ranks from the list of
// devices. Throws InputError with what is missing.
std::vector<ExchangeSample> read_nccl_tests(const std::string& file);

// The same of the file's text.
std::vector<ExchangeSample> parse_nccl_tests(const std::string& text, const std::string& file);

}  // namespace shardwright::sim
