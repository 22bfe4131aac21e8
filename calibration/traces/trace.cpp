#include "calibration/traces/trace.hpp"

namespace shardwright::calibration {

TraceIndex NameTable::index_of(std::string_view name) {
  const auto [entry, is_new] =
      indices_.try_emplace(std::string(name), static_cast<TraceIndex>(names_.size()));
  if (is_new) names_.push_back(entry->first);
  return entry->second;
}

}  // namespace shardwright::calibration
