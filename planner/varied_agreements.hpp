// The agreements of replicas that a search compares.
#pragma once

#include <vector>

#include "core/spec/plan.hpp"

namespace shardwright::planner {

// The agreements that `--vary` asks for, the all-reduce first: with `sync` also local steps as
// published runs made them and parameter servers on the workers' nodes, with `compression` also
// each compressed form; with both, all that go together.
std::vector<ReplicaAgreement> varied_agreements(bool sync, bool compression);

}  // namespace shardwright::planner
