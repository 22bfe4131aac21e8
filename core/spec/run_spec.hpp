// A run profile: everything that decides how long a training run takes beyond its steps: failures,
// recovery, checkpoints, evaluation, stragglers, input, prices, and the stages of the run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/enum_names.hpp"
#include "core/base/units.hpp"
#include "core/spec/provenance.hpp"

namespace shardwright {

inline constexpr double kSecondsPerDay = 86'400.0;

// The component whose failure interrupts a run, or another reason for an interruption.
enum class FailureCause : std::uint8_t {
  Gpu,
  Hbm,
  Nic,
  Link,
  Switch,
  Host,
  Storage,
  Software,
  // Wrong results without an error: the run goes on until somebody notices.
  SilentCorruption,
  // A planned stop, before which the run saves its state.
  Maintenance,
  // A spot node that the provider takes back.
  Preemption,
  // Power or cooling of a rack, which stops all of its nodes.
  Rack,
};
constexpr auto enum_names(FailureCause) {
  return std::array{"gpu",         "hbm",        "nic",
                    "link",        "switch",     "host",
                    "storage",     "software",   "silent_corruption",
                    "maintenance", "preemption", "rack"};
}

// The failures of one cause. Without a rate there are none.
struct FailureSpec {
  double per_1000_node_days = 0.0;
  // The mean time between failures of one component, in place of the rate of a node.
  double mtbf_hours = 0.0;
  double components_per_node = 1.0;
  double weibull_shape = 1.0;
  // Nodes that one failure stops together: all below a switch, or all of a rack.
  std::int64_t nodes = 1;
  // Share of the failures after which other nodes take the place of the failed ones.
  double replaced = 1.0;
  // Zero: that of all causes.
  Seconds detection;
  // Time from the announcement of a stop to the stop; zero: none is announced.
  Seconds notice;
  // Until another node is there for a replaced one. Zero: that of all causes.
  Seconds repair;

  // Failures of a node per second.
  double node_rate() const;

  bool operator==(const FailureSpec&) const = default;
};

// The failures of the nodes of one pool of a mixed cluster.
struct PoolFailures {
  std::string pool;
  // The rates of all causes over those of the fleet.
  double rate = 1.0;

  bool operator==(const PoolFailures&) const = default;
};

struct FleetSpec {
  EnumArray<FailureCause, FailureSpec> failures{};
  // The rates of all causes over those stated.
  double rate = 1.0;
  double spread = 0.0;
  double age_days = 0.0;
  double correlated = 0.0;
  std::int64_t correlated_nodes = 2;
  // The pools whose nodes fail more or less often than the others.
  std::vector<PoolFailures> pools{};

  // The rates of a node of this pool over those of the fleet.
  double rate_of(const std::string& pool) const;

  bool operator==(const FleetSpec&) const = default;
};

struct RecoverySpec {
  Seconds detection;
  double manual = 0.0;
  Seconds manual_time;
  Seconds restart;
  Seconds restart_per_1000_nodes;
  Seconds repair;
  double spares = 0.0;
  // Without a spare node the run goes on without the replicas that lack nodes.
  bool shrinks = false;
  // States of which another replica has a copy come from there, and no work is lost.
  bool from_replicas = false;
  // Further replicas that keep up with the others and take the place of one that lacks a node.
  std::int64_t spare_replicas = 0;
  Seconds swap;

  bool operator==(const RecoverySpec&) const = default;
};

enum class CheckpointKind : std::uint8_t {
  // The run stands still until the state is written.
  Synchronous,
  // The run stands still while the state is copied to the host, which writes it in the background.
  Asynchronous,
  // Like that, and the copy goes to the memory of other hosts as well; every n-th is written.
  InMemory,
};
constexpr auto enum_names(CheckpointKind) {
  return std::array{"synchronous", "asynchronous", "in-memory"};
}

struct CheckpointSpec {
  CheckpointKind kind = CheckpointKind::Synchronous;
  // Zero: the interval of the shortest run.
  Seconds interval;
  Seconds fixed;
  BytesPerSecond node_bandwidth;
  BytesPerSecond store_write, store_read;
  Seconds copy_fixed;
  BytesPerSecond copy_bandwidth;
  BytesPerSecond replica_bandwidth;
  std::int64_t copies = 2;
  std::int64_t written_every = 1;
  Bytes bytes_per_parameter;

  bool operator==(const CheckpointSpec&) const = default;
};

struct EvaluationSpec {
  std::int64_t every_steps = 0;
  Seconds duration;

  bool operator==(const EvaluationSpec&) const = default;
};

struct StragglerSpec {
  double per_1000_node_days = 0.0;
  Seconds duration;
  double slowdown = 0.0;

  bool operator==(const StragglerSpec&) const = default;
};

// What limits the supply of training data. Zeros: no limit.
struct InputSpec {
  double tokens_per_s = 0.0;
  // Of one token in the data set, and of the whole of it, which is read again after its end.
  Bytes token, dataset;
  BytesPerSecond store_read;
  // Files of the data set, each of which one worker reads at a time, and how fast it does.
  std::int64_t shards = 0;
  BytesPerSecond shard_read;
  // Of a node's own disks.
  Bytes cache;
  BytesPerSecond cache_read;
  double worker_tokens_per_s = 0.0;
  std::int64_t workers_per_node = 0;

  bool operator==(const InputSpec&) const = default;
};

enum class Contract : std::uint8_t { OnDemand, Reserved, Spot };
constexpr auto enum_names(Contract) {
  return std::array{"on-demand", "reserved", "spot"};
}

struct PriceSpec {
  Contract contract = Contract::OnDemand;
  // Zero: that of the cluster.
  double dollars_per_gpu_hour = 0.0;
  // Prices over the one on demand; zero: not offered.
  double reserved = 0.0, spot = 0.0;

  bool operator==(const PriceSpec&) const = default;
};

// Tokens that are trained with other settings than those of the plan. Zeros: as in the plan.
struct RunStage {
  std::string name;
  // Zero: all tokens that the other stages leave.
  double tokens = 0.0;
  std::int64_t global_batch = 0;
  std::int64_t seq_len = 0;
  std::int64_t micro_batch = 0;
  std::int64_t tp = 0, pp = 0, vpp = 0, ep = 0, cp = 0;
  std::int64_t dp = 0;
  // "recompute=full": further fields of a plan file, and their values.
  std::vector<std::string> set{};

  bool operator==(const RunStage&) const = default;
};

// Grouped as its JSON is; `describe` (core/spec/run_json.cpp) says what each field means.
struct RunSpec {
  std::string name;
  FleetSpec fleet;
  RecoverySpec recovery;
  CheckpointSpec checkpoint;
  Seconds startup;
  EvaluationSpec evaluation;
  StragglerSpec stragglers;
  InputSpec input;
  PriceSpec price;
  // Zero: that of the cluster.
  double power_usage_effectiveness = 0.0;
  std::vector<RunStage> stages;
  std::string notes;
  Sources sources;

  bool operator==(const RunSpec&) const = default;
};

}  // namespace shardwright
