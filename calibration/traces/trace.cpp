#include "calibration/traces/trace.hpp"

namespace shardwright::calibration {

TraceIndex NameTable::index_of(std::string_view name) {
  if (const auto known = indices_.find(name); known != indices_.end()) return known->second;
  const auto index = static_cast<TraceIndex>(names_.size());
  indices_.emplace(names_.emplace_back(name), index);
  return index;
}

}  // namespace shardwright::calibration
