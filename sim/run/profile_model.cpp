#include "sim/run/profile_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardwright::sim {
namespace {

// The time to move `bytes`; a bandwidth of zero takes none.
Seconds transfer(Bytes bytes, BytesPerSecond bandwidth) {
  return bandwidth > BytesPerSecond() ? bytes / bandwidth : Seconds();
}

BytesPerSecond through_store(BytesPerSecond store, BytesPerSecond node, double nodes) {
  return node > BytesPerSecond() ? std::min(store, node * nodes) : store;
}

// The share of the time in which at least one of the nodes is slow: stragglers come at random and
// stay for their mean duration (an M/G/infinity queue is empty with probability exp(-load)).
double straggling_share(const StragglerSpec& stragglers, double nodes) {
  const double begin_per_s = stragglers.per_1000_node_days / (1000.0 * kSecondsPerDay) * nodes;
  return -std::expm1(-begin_per_s * stragglers.duration.value());
}

// The share of the data that nodes keep on their own disks.
double cached_share(const InputSpec& input, double nodes) {
  if (input.dataset <= Bytes() || input.cache <= Bytes()) return 0.0;
  return std::min(1.0, nodes * input.cache / input.dataset);
}

// The steps of the first pass over the data set, and those of later ones, in all stages.
std::vector<InputWait> input_waits(const InputSpec& input, const std::vector<StageSteps>& stages) {
  // Tokens that were not read yet; without the size of the data set all tokens are new.
  double unread = input.dataset > Bytes() ? input.dataset / input.token
                                          : std::numeric_limits<double>::infinity();
  std::vector<InputWait> waits;
  for (const StageSteps& stage : stages) {
    const double tokens = stage.steps * stage.tokens_per_step;
    if (tokens <= 0.0) continue;
    const double first = std::min(tokens, unread);
    unread -= first;
    for (const bool is_first : {true, false}) {
      const double supply = input_supply(input, static_cast<double>(stage.nodes), is_first);
      waits.push_back({(is_first ? first : tokens - first) / stage.tokens_per_step, stage.step,
                       Seconds(stage.tokens_per_step / supply)});
    }
  }
  return waits;
}

// The mean over the time of the steps of the nodes at work, times the rate of their failures over
// that of the fleet.
double mean_failing_nodes(const std::vector<StageSteps>& stages) {
  Seconds time, node_time;
  for (const StageSteps& stage : stages) {
    time += stage.steps * stage.step;
    node_time += stage.steps * stage.step * static_cast<double>(stage.nodes) * stage.failure_rate;
  }
  return node_time / time;
}

FailureProcess process_of(const RunSpec& run, FailureCause cause, double nodes, Seconds save) {
  const FailureSpec& failures = run.fleet.failures[cause];
  FailureProcess process;
  process.rate = Hertz(failures.node_rate() * run.fleet.rate * nodes);
  process.shape = failures.weibull_shape;
  process.age = Seconds(run.fleet.age_days * kSecondsPerDay);
  process.nodes = failures.nodes;
  process.replaced = failures.replaced;
  process.detection = failures.detection > Seconds() ? failures.detection : run.recovery.detection;
  const bool noticed = failures.notice > Seconds();
  process.planned = cause == FailureCause::Maintenance || (noticed && failures.notice >= save);
  process.announced = noticed && !process.planned;
  process.repair = failures.repair;
  process.silent = cause == FailureCause::SilentCorruption;
  return process;
}

// Failures of so many nodes at once lose what other nodes hold.
std::int64_t nodes_losing_copies(const RunSpec& run, const RunMachine& machine,
                                 bool from_replicas) {
  constexpr std::int64_t kReplicasLosing = 2;
  if (from_replicas) return kReplicasLosing;
  if (run.checkpoint.kind != CheckpointKind::InMemory)
    return std::numeric_limits<std::int64_t>::max();
  return std::min(run.checkpoint.copies, machine.nodes);
}

// The expected count of failures in a time, over that time.
Hertz mean_rate(const FailureProcess& process, Seconds time) {
  if (process.shape == 1.0 || process.age <= Seconds() || time <= Seconds()) return process.rate;
  const double aged = time / process.age;
  return process.rate * ((std::pow(1.0 + aged, process.shape) - 1.0) / (process.shape * aged));
}

// The share of the failures after which the run goes back to a checkpoint.
double share_losing_work(const RunModel& model, const FailureProcess& process) {
  if (process.planned) return 0.0;
  if (process.silent) return 1.0;
  const auto loses = [&](std::int64_t nodes) {
    return !model.from_replicas || nodes >= model.nodes_losing_copies;
  };
  const bool swaps = model.spare_replicas > 0 && process.nodes == 1;
  const double alone = loses(process.nodes) ? (swaps ? 1.0 - process.replaced : 1.0) : 0.0;
  const double together = loses(std::max(process.nodes, model.correlated_nodes)) ? 1.0 : 0.0;
  return (1.0 - model.correlated) * alone + model.correlated * together;
}

// What the store gives: all of its bandwidth, if as many shards are read at once as that takes.
BytesPerSecond store_supply(const InputSpec& input, double nodes) {
  constexpr BytesPerSecond kNoLimit(std::numeric_limits<double>::infinity());
  BytesPerSecond supply = input.store_read > BytesPerSecond() ? input.store_read : kNoLimit;
  if (input.shard_read <= BytesPerSecond()) return supply;
  double streams = std::numeric_limits<double>::infinity();
  if (input.shards > 0) streams = static_cast<double>(input.shards);
  if (input.workers_per_node > 0)
    streams = std::min(streams, nodes * static_cast<double>(input.workers_per_node));
  return std::min(supply, streams * input.shard_read);
}

}  // namespace

RunTimes work_of(const RunSpec& run, const std::vector<StageSteps>& stages) {
  RunTimes work{};
  double steps = 0.0;
  for (const StageSteps& stage : stages) {
    const Seconds time = stage.steps * stage.step;
    steps += stage.steps;
    work[RunPart::Step] += time;
    work[RunPart::Straggler] +=
        time * (run.stragglers.slowdown *
                straggling_share(run.stragglers, static_cast<double>(stage.nodes)));
  }
  work[RunPart::InputStall] = input_stall(input_waits(run.input, stages), 1.0);
  if (run.evaluation.every_steps > 0) {
    work[RunPart::Evaluation] =
        std::floor(steps / static_cast<double>(run.evaluation.every_steps)) *
        run.evaluation.duration;
  }
  return work;
}

double input_supply(const InputSpec& input, double nodes, bool first_pass) {
  double supply = std::numeric_limits<double>::infinity();
  if (input.tokens_per_s > 0.0) supply = input.tokens_per_s;
  const double hits = first_pass ? 0.0 : cached_share(input, nodes);
  const BytesPerSecond store = store_supply(input, nodes);
  if (std::isfinite(store.value()) && hits < 1.0)
    supply = std::min(supply, store / input.token.value() / (1.0 - hits) / BytesPerSecond(1.0));
  if (input.cache_read > BytesPerSecond() && hits > 0.0)
    supply = std::min(supply,
                      nodes * input.cache_read / input.token.value() / hits / BytesPerSecond(1.0));
  if (input.worker_tokens_per_s > 0.0 && input.workers_per_node > 0) {
    supply = std::min(
        supply, nodes * static_cast<double>(input.workers_per_node) * input.worker_tokens_per_s);
  }
  return supply;
}

CheckpointCost checkpoint_cost(const CheckpointSpec& checkpoint, const RunMachine& machine) {
  const auto nodes = static_cast<double>(machine.nodes);
  const Bytes part = machine.checkpoint / nodes;
  const Seconds write =
      checkpoint.fixed +
      machine.checkpoint / through_store(checkpoint.store_write, checkpoint.node_bandwidth, nodes);
  const Seconds read =
      machine.checkpoint / through_store(checkpoint.store_read, checkpoint.node_bandwidth, nodes);
  const Seconds copy = checkpoint.copy_fixed + transfer(part, checkpoint.copy_bandwidth);
  const Seconds replica = transfer(part, checkpoint.replica_bandwidth);
  const Bytes bytes = machine.checkpoint;
  switch (checkpoint.kind) {
    case CheckpointKind::Synchronous:
      break;
    case CheckpointKind::Asynchronous:
      return {copy, copy + write, copy + write, 1, read, read, copy + write, bytes};
    case CheckpointKind::InMemory: {
      const Seconds safe = copy + replica * static_cast<double>(checkpoint.copies - 1);
      // A single copy is lost with its node.
      const Seconds load = checkpoint.copies > 1 ? replica : read;
      return {copy,         safe,  copy + write, checkpoint.written_every, load, read,
              copy + write, bytes, true};
    }
  }
  return {write, write, write, 1, read, read, write, bytes};
}

Seconds least_interval(const CheckpointCost& cost) {
  const Seconds writing = (cost.stored - cost.stall) / static_cast<double>(cost.stored_every);
  return std::max({Seconds(), cost.safe - cost.stall, writing});
}

RunModel run_model(const RunSpec& run, std::vector<StageSteps> stages, const RunMachine& machine) {
  const auto nodes = static_cast<double>(machine.nodes);
  for (StageSteps& stage : stages)
    if (stage.nodes == 0) stage.nodes = machine.nodes;
  RunModel model;
  model.work = work_of(run, stages);
  model.input_waits = input_waits(run.input, stages);
  model.checkpoint = checkpoint_cost(run.checkpoint, machine);
  if (run.checkpoint.interval > Seconds())
    model.interval = std::max(run.checkpoint.interval, least_interval(model.checkpoint));
  model.startup = run.startup;
  for (const FailureCause cause : enumerators<FailureCause>())
    model.failures[cause] =
        process_of(run, cause, mean_failing_nodes(stages), model.checkpoint.save);
  for (FailureProcess& process : model.failures)
    process.nodes = std::min(process.nodes, machine.nodes);
  model.rate_spread = run.fleet.spread;
  model.correlated = run.fleet.correlated;
  model.correlated_nodes = std::min(run.fleet.correlated_nodes, machine.nodes);
  model.from_replicas = run.recovery.from_replicas && machine.copies_on_nodes > 1;
  model.nodes_losing_copies = nodes_losing_copies(run, machine, model.from_replicas);
  // A new node takes all states that its ranks hold.
  model.load_replica = transfer(machine.checkpoint * static_cast<double>(machine.copies) / nodes,
                                run.checkpoint.replica_bandwidth);
  model.replicas = run.recovery.shrinks ? machine.replicas : 1;
  model.replicas_of_node = static_cast<double>(machine.replicas) / nodes;
  model.manual = run.recovery.manual;
  model.manual_time = run.recovery.manual_time;
  model.restart = run.recovery.restart + run.recovery.restart_per_1000_nodes * (nodes / 1000.0);
  model.repair = run.recovery.repair;
  model.spares = static_cast<std::int64_t>(std::round(run.recovery.spares * nodes));
  model.nodes_of_replica = (machine.nodes + machine.replicas - 1) / machine.replicas;
  model.swap = run.recovery.swap;
  // Where replicas share the states, a spare one lacks those of the node that failed, and where one
  // node has several replicas or all of a state, they fail together.
  const bool is_whole = machine.copies >= machine.replicas && machine.copies_on_nodes > 1;
  if (is_whole && machine.replicas <= machine.nodes) {
    model.spare_replicas = run.recovery.spare_replicas;
  } else {
    model.spares += run.recovery.spare_replicas * model.nodes_of_replica;
  }
  return model;
}

Seconds job_mtbf(const RunModel& model, bool losing_work) {
  Hertz rate;
  for (const FailureProcess& process : model.failures) {
    if (process.planned) continue;
    rate += mean_rate(process, model.total_work()) * process.kept *
            (losing_work ? share_losing_work(model, process) : 1.0);
  }
  return Seconds(1.0 / rate.value());
}

}  // namespace shardwright::sim
