#include "planner/varied_agreements.hpp"

#include <array>

namespace shardwright::planner {
namespace {

// The setting that its source recommends: fragments of three layers, eight of a model with 24, and
// exchanges beside one step (arXiv 2501.18512).
ReplicaAgreement streaming_diloco() {
  ReplicaAgreement local;
  local.sync = ReplicaSync::LocalSteps;
  local.inner_steps = 100;
  local.outer = OuterOptimizer::Nesterov;
  local.fragments = 8;
  local.fragment_order = FragmentOrder::Strided;
  local.overlap_steps = 1;
  local.local_share = 0.5;
  return local;
}

}  // namespace

std::vector<ReplicaAgreement> varied_agreements(bool sync, bool compression) {
  std::vector<ReplicaAgreement> agreements = {{}};
  // Between exchanges: the scaling laws of DiLoCo (arXiv 2503.09799), INTELLECT-1 (arXiv
  // 2412.01152) and DiLoCo itself (arXiv 2311.08105).
  constexpr std::array<std::int64_t, 3> kInnerSteps = {30, 100, 500};
  // The least of the bounds that were best for servers of stale updates (Ho et al., NIPS 2013).
  constexpr std::int64_t kUsualStaleness = 10;
  for (const std::int64_t steps : kInnerSteps) {
    if (!sync) break;
    ReplicaAgreement local;
    local.sync = ReplicaSync::LocalSteps;
    local.inner_steps = steps;
    local.outer = OuterOptimizer::Nesterov;
    agreements.push_back(local);
  }
  if (sync) agreements.push_back(streaming_diloco());
  for (const ServerUpdates updates : enumerators<ServerUpdates>()) {
    if (!sync) break;
    ReplicaAgreement served;
    served.sync = ReplicaSync::ParameterServer;
    served.server_updates = updates;
    if (updates == ServerUpdates::BoundedStaleness) served.staleness = kUsualStaleness;
    agreements.push_back(served);
  }
  if (!compression) return agreements;
  std::vector<ReplicaAgreement> all;
  for (const ReplicaAgreement& agreement : agreements) {
    for (const ReplicaCompression form : enumerators<ReplicaCompression>()) {
      if (agreement.has_servers() && form != ReplicaCompression::None) continue;
      all.push_back(agreement);
      all.back().compression = form;
    }
  }
  return all;
}

}  // namespace shardwright::planner
