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

#include "executor/data/token_format.hpp"

namespace shardwright::executor {

// The tokens of the file of `bytes` bytes that the index tells of, which its sequences fill one
// after another. Throws InputError if the index is not whole, contradicts itself or the size of the
// file, or has no tokens of integers.
TokenFormat read_megatron_index(const std::filesystem::path& index, std::uint64_t bytes);

}  // namespace shardwright::executor
