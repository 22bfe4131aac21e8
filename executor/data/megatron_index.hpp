// The index beside a corpus of Megatron-LM (megatron/core/datasets/indexed_dataset.py):
//
//   9 bytes   "MMIDIDX", 0, 0
//   uint64    version, 1
//   uint8     type of the tokens
//   uint64    sequences
//   uint64    documents, with the one that would follow the last
//   int32[]   tokens of each sequence
//   int64[]   byte at which each sequence begins
//   int64[]   first sequence of each document
//   int8[]    mode of each sequence, where the corpus has more than one
//
// All little-endian.
#pragma once

#include <cstdint>
#include <filesystem>

#include "executor/data/token_file.hpp"

namespace shardwright::executor {

// Returns the format of the tokens in the file of `bytes` bytes that the index describes. Throws
// InputError if the index is incomplete, contradicts itself or the file size, or has tokens that
// are no integers.
TokenFormat read_megatron_index(const std::filesystem::path& index, std::uint64_t bytes);

}  // namespace shardwright::executor
