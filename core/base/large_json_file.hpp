// Reading of JSON that programs write: timelines and results may be larger than what people write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace shardwright {

// As read_json_file (core/base/json_reader.hpp), with a limit of its own. Throws InputError.
nlohmann::json read_large_json_file(const std::filesystem::path& file, std::uintmax_t most_bytes);

}  // namespace shardwright
