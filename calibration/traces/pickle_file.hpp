// Pickles of Python in files: memory snapshots as they are, checkpoints within the zip file of
// torch.save.
#pragma once

#include <string>

#include "core/base/large_json_file.hpp"
#include "core/base/pickle.hpp"

namespace shardwright::calibration {

// Tells by the first bytes, also behind gzip. False for what is no regular file.
bool is_pickle_file(const std::string& file);

// Reads the pickle alone, not the tensors beside it. Of a file that an old torch.save wrote, which
// begins with pickles about the format, the first one behind those. Throws InputError where the
// file is damaged or without a pickle, and ReadingStopped where `watch` asks for it.
PickleDocument read_pickle_file(const std::string& file, const ReadingWatch& watch = {});

}  // namespace shardwright::calibration
