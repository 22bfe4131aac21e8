#include "core/spec/run_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/spec/field_json.hpp"
#include "core/spec/figures.hpp"

namespace shardwright {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr NumberRange kRate{0.0, 1e6, false};
// Ten years.
constexpr NumberRange kDuration{0.0, 3.2e8, false};
constexpr NumberRange kTokens{0.0, 1e18, false};

const char* meaning_of(FailureCause cause) {
  constexpr EnumArray<FailureCause, const char*> kMeanings{
      {"a GPU without its memory: lost from the bus, thermal, on-chip memory",
       "uncorrectable errors of device memory", "a network adapter",
       "a link or its optics, and collectives that time out without another finding",
       "a switch, which stops the nodes below it",
       "host: CPU, memory, PCIe device, power supply, operating system",
       "file system or local disk",
       "framework, driver or job; another try on the same nodes will do",
       "wrong results; the work from then until its detection is lost",
       "a planned stop, before which the run saves its state",
       "a spot node that the provider takes back", "power or cooling of a rack"}};
  return kMeanings[cause];
}

void describe_failures_of(FailureSpec& failures, FieldVisitor& fields) {
  fields.number("per_1000_node_days", failures.per_1000_node_days, kRate, kOmissible,
                "interruptions per 1,000 days of a node, at the age of the fleet when the run "
                "begins");
  fields.number("mtbf_hours", failures.mtbf_hours, kNonNegative, kOmissible,
                "mean time between failures of one component, in place of that rate");
  fields.number("components_per_node", failures.components_per_node, kPositive, kOmissible,
                "components of a node that have this mean time between failures");
  fields.number(
      "weibull_shape", failures.weibull_shape, {0.1, 10.0, false}, kOmissible,
      "shape of the lifetimes: below 1 rates fall with the age of the fleet, above 1 they "
      "grow; 1: exponential");
  fields.integer("nodes", failures.nodes, {1, 1'000'000}, kOmissible,
                 "nodes that one failure stops together, as all below a switch or of a rack");
  fields.number("replaced_ratio", failures.replaced, kRatioOrZero, kOmissible,
                "share of them after which spare nodes take the place of the failed ones");
  fields.number("detection_s", failures.detection, kDuration, kOmissible,
                "time until they are noticed; 0: `recovery.detection_s`");
  fields.number(
      "notice_s", failures.notice, kDuration, kOmissible,
      "time from the announcement of a stop to the stop, in which the run saves its state "
      "if it can; 0: none is announced");
  fields.number("repair_s", failures.repair, kDuration, kOmissible,
                "mean time until there is a node for a replaced one; 0: `recovery.repair_s`");
}

void describe_fleet(FleetSpec& fleet, FieldVisitor& fields) {
  for (const FailureCause cause : enumerators<FailureCause>()) {
    fields.section(name_of(cause), kOmissible, meaning_of(cause),
                   [&] { describe_failures_of(fleet.failures[cause], fields); });
  }
  fields.number("rate_ratio", fleet.rate, {0.0, 1000.0, false}, kOmissible,
                "rates of all causes over those stated here: of a fleet that fails more or less "
                "often");
  fields.number("spread_ratio", fleet.spread, {0.0, 3.0, false}, kOptional,
                "standard deviation of the natural logarithm of all rates from fleet to fleet: how "
                "uncertain they are before the run");
  fields.number("age_days", fleet.age_days, {0.0, 36'500.0, false}, kOmissible,
                "days that the fleet has run when the run begins; needed where a shape is not 1");
  fields.number("correlated_ratio", fleet.correlated, kRatioOrZero, kOptional,
                "share of the failures of any cause that take `correlated_nodes` at once");
  fields.integer("correlated_nodes", fleet.correlated_nodes, {1, 1'000'000}, kOmissible,
                 "nodes that such a failure takes, if its cause does not take more");
  fields.list("pools", fleet.pools, kOmissible,
              "pools of a mixed cluster whose nodes fail more or less often than the others",
              [&](PoolFailures& failures) {
                fields.text("pool", failures.pool, kRequired, "name of the pool");
                fields.number("rate_ratio", failures.rate, {0.0, 1000.0, false}, kRequired,
                              "rates of all causes on its nodes over those of the fleet");
              });
}

void describe_recovery(RecoverySpec& recovery, FieldVisitor& fields) {
  fields.number("detection_s", recovery.detection, kDuration, kOptional,
                "time until a failure is noticed, diagnosed and the job is stopped");
  fields.number("manual_ratio", recovery.manual, kRatioOrZero, kOptional,
                "share of the failures that people must look at");
  fields.number("manual_s", recovery.manual_time, kDuration, kOptional, "further time that takes");
  fields.number("restart_s", recovery.restart, kDuration, kOptional,
                "time from a stopped job to its first step, without that to load the checkpoint");
  fields.number("restart_per_1000_nodes_s", recovery.restart_per_1000_nodes, kDuration, kOptional,
                "further time for each 1,000 nodes");
  fields.number(
      "repair_s", recovery.repair, kDuration, kOptional,
      "mean time until a replaced node is back as a spare one; exponentially distributed");
  fields.number("spare_ratio", recovery.spares, {0.0, 10.0, false}, kOptional,
                "hot spare nodes over nodes of the job, rounded to a whole number of nodes");
  fields.boolean(
      "shrinks", recovery.shrinks, kOmissible,
      "without a spare node the run goes on without the data-parallel replicas that lack "
      "nodes, and grows again after the repair; otherwise it waits");
  fields.boolean(
      "from_replicas", recovery.from_replicas, kOmissible,
      "where the plan keeps several copies of all states, a failure of one node loses no "
      "work: the states come from another replica, not from a checkpoint");
  fields.integer(
      "spare_replicas", recovery.spare_replicas, {0, 1'000}, kOmissible,
      "hot spare data-parallel replicas (whole pipelines): where the plan keeps all states in "
      "each replica, one takes the place of a replica that lacks a node, and no work is "
      "lost; elsewhere their nodes are spare nodes");
  fields.number("swap_s", recovery.swap, kDuration, kOmissible,
                "time from a stopped job to its first step when a spare replica has come in");
}

void describe_checkpoint(CheckpointSpec& checkpoint, FieldVisitor& fields) {
  fields.choice("kind", checkpoint.kind, kOptional,
                "synchronous: the run waits for the store; asynchronous: for a copy to the host; "
                "in-memory: the same, and other hosts hold copies");
  fields.number("interval_s", checkpoint.interval, kDuration, kOptional,
                "training time between two checkpoints; 0: the best one by simulation");
  fields.number("fixed_s", checkpoint.fixed, kDuration, kOptional,
                "time of a write to the store that does not depend on its size");
  fields.number("node_bytes_per_s", checkpoint.node_bandwidth, kNonNegative, kOptional,
                "bandwidth of a node to and from the store; 0: the store's is the limit");
  fields.number("store_write_bytes_per_s", checkpoint.store_write, kPositive, kRequired,
                "write bandwidth of the whole store");
  fields.number("store_read_bytes_per_s", checkpoint.store_read, kPositive, kRequired,
                "read bandwidth of the whole store");
  fields.number(
      "copy_fixed_s", checkpoint.copy_fixed, kDuration, kOmissible,
      "asynchronous and in-memory: time of a copy to the host that does not depend on its "
      "size");
  fields.number(
      "copy_bytes_per_s", checkpoint.copy_bandwidth, kNonNegative, kOmissible,
      "the same kinds: bandwidth at which a node copies to the host; 0: it takes no time");
  fields.number("replica_bytes_per_s", checkpoint.replica_bandwidth, kNonNegative, kOmissible,
                "in-memory: bandwidth at which a node copies to and from the memory of another "
                "host; 0: it takes no time");
  fields.integer(
      "copies", checkpoint.copies, {1, 1'000}, kOmissible,
      "in-memory: hosts that hold a part of the state; failures of as many nodes at once "
      "lose it");
  fields.integer("written_every", checkpoint.written_every, {1, 1'000'000}, kOmissible,
                 "in-memory: each n-th checkpoint is written to the store, too");
  double bytes = checkpoint.bytes_per_parameter.value();
  fields.number("bytes_per_parameter", bytes, {0.0, 64.0, false}, kOmissible,
                "size of a checkpoint over that of the model; 0: what stack and plan keep of a "
                "parameter");
  checkpoint.bytes_per_parameter = Bytes(bytes);
}

void describe_price(PriceSpec& price, FieldVisitor& fields) {
  fields.choice("contract", price.contract, kOptional, "the contract whose price is reported");
  fields.number("dollars_per_gpu_hour", price.dollars_per_gpu_hour, kNonNegative, kOmissible,
                "price of a GPU on demand; 0: that of the cluster");
  fields.number("reserved_ratio", price.reserved, kRatioOrZero, kOmissible,
                "price of a reserved GPU over that on demand; 0: not offered");
  fields.number("spot_ratio", price.spot, kRatioOrZero, kOmissible,
                "price of a spot GPU over that on demand; 0: not offered");
}

void describe_input(InputSpec& input, FieldVisitor& fields) {
  fields.number("tokens_per_s", input.tokens_per_s, kNonNegative, kOptional,
                "tokens that the input pipeline supplies in all; 0 here and below: no limit");
  fields.number("token_bytes", input.token, kNonNegative, kOmissible,
                "size of a token in the data set, as in 2 or 4, or of what becomes one");
  fields.number(
      "dataset_bytes", input.dataset, kNonNegative, kOmissible,
      "size of the data set, which is read again after its end; 0: no byte is read twice");
  fields.number("store_read_bytes_per_s", input.store_read, kNonNegative, kOmissible,
                "bandwidth of the store for training data");
  fields.integer("shards", input.shards, {0, 1'000'000'000}, kOmissible,
                 "files of the data set, each of which one worker reads at a time");
  fields.number("shard_read_bytes_per_s", input.shard_read, kNonNegative, kOmissible,
                "bandwidth at which a worker reads a shard from the store");
  fields.number("cache_bytes", input.cache, kNonNegative, kOmissible,
                "space on a node's own disks for data that it read before; 0: none");
  fields.number("cache_read_bytes_per_s", input.cache_read, kNonNegative, kOmissible,
                "read bandwidth of these disks");
  fields.number("worker_tokens_per_s", input.worker_tokens_per_s, kNonNegative, kOmissible,
                "tokens that one preprocessing worker prepares");
  fields.integer("workers_per_node", input.workers_per_node, {0, 1'000'000}, kOmissible,
                 "preprocessing workers of a node");
}

void check_fleet(const FleetSpec& fleet, ProblemList& problems) {
  for (const FailureCause cause : enumerators<FailureCause>()) {
    const FailureSpec& failures = fleet.failures[cause];
    const std::string place = fmt::format("/failures/{}", name_of(cause));
    if (failures.mtbf_hours > 0.0 && failures.per_1000_node_days > 0.0)
      problems.add(place + "/mtbf_hours", "also per_1000_node_days", "one of the two");
    if (failures.weibull_shape != 1.0 && fleet.age_days <= 0.0) {
      problems.add(place + "/weibull_shape", fmt::format("{}", failures.weibull_shape),
                   "1, or failures.age_days above 0: rates depend on the age of the fleet");
    }
  }
}

void check(const RunSpec& spec, ProblemList& problems) {
  check_fleet(spec.fleet, problems);
  const InputSpec& input = spec.input;
  const bool reads = input.store_read > BytesPerSecond() || input.shard_read > BytesPerSecond() ||
                     input.cache > Bytes();
  if (reads && input.token <= Bytes()) {
    problems.add("/input/token_bytes", "no size of a token",
                 "the bytes of a token, which a bandwidth or a cache needs");
  }
  if (input.shards > 0 && input.shard_read <= BytesPerSecond()) {
    problems.add("/input/shard_read_bytes_per_s", fmt::format("{} shards without it", input.shards),
                 "how fast a worker reads a shard");
  }
  if (const double pue = spec.power_usage_effectiveness; pue > 0.0 && pue < 1.0) {
    problems.add("/power_usage_effectiveness_ratio", fmt::format("{}", pue),
                 "a number from 1, or 0 for that of the cluster");
  }
  check_stages(spec.stages, problems);
}

}  // namespace

double FailureSpec::node_rate() const {
  return mtbf_hours > 0.0 ? components_per_node / (mtbf_hours * 3600.0)
                          : per_1000_node_days / (1000.0 * kSecondsPerDay);
}

double FleetSpec::rate_of(const std::string& pool) const {
  const auto stated = std::ranges::find(pools, pool, &PoolFailures::pool);
  return stated == pools.end() ? 1.0 : stated->rate;
}

void describe(RunStage& stage, FieldVisitor& fields) {
  fields.text("name", stage.name, kRequired, "name of the stage, as in ramp-up or long-context");
  fields.number("tokens", stage.tokens, kTokens, kOmissible,
                "tokens of the stage; 0: all that the others leave, in at most one stage");
  fields.integer("global_batch", stage.global_batch, {0, 1'000'000'000}, kOmissible,
                 "sequences per step; 0 here and below: as in the plan");
  fields.integer("seq_len", stage.seq_len, {0, 1'000'000'000}, kOmissible, "tokens per sequence");
  fields.integer("micro_batch", stage.micro_batch, {0, 1'000'000}, kOmissible,
                 "sequences per microbatch; 0: as in the plan, or fewer if the batch asks for it");
  fields.integer("tp", stage.tp, {0, 1'000'000}, kOmissible,
                 "tensor-parallel ranks; without `dp` the data-parallel degree follows from the "
                 "degrees of the stage on all GPUs of the plan");
  fields.integer("pp", stage.pp, {0, 1'000'000}, kOmissible, "pipeline stages");
  fields.integer("vpp", stage.vpp, {0, 1'000'000}, kOmissible,
                 "chunks of a pipeline stage; 0: as in the plan, or 1 if `pp` is stated");
  fields.integer("ep", stage.ep, {0, 1'000'000}, kOmissible, "expert-parallel ranks");
  fields.integer("cp", stage.cp, {0, 1'000'000}, kOmissible, "context-parallel ranks");
  fields.integer("dp", stage.dp, {0, 10'000'000}, kOmissible, "data-parallel replicas");
  fields.texts("set", stage.set, kOmissible,
               "further fields of the plan and their values, as in \"recompute=full\" or "
               "\"data_parallel.compression=int8\"");
}

void check_stages(const std::vector<RunStage>& stages, ProblemList& problems) {
  const auto open =
      std::ranges::count_if(stages, [](const RunStage& stage) { return stage.tokens == 0.0; });
  if (open > 1)
    problems.add("/stages", fmt::format("{} stages without tokens", open), "at most one");
}

void describe(RunSpec& run, FieldVisitor& fields) {
  fields.header("shardwright/run", true);
  fields.text("name", run.name, kRequired, "name of the profile");
  fields.section("failures", kOptional, "what interrupts the run, by cause",
                 [&] { describe_fleet(run.fleet, fields); });
  fields.section("recovery", kOptional, "what follows an interruption",
                 [&] { describe_recovery(run.recovery, fields); });
  fields.section("checkpoint", kRequired, "how the state is saved",
                 [&] { describe_checkpoint(run.checkpoint, fields); });
  fields.number("startup_s", run.startup, kDuration, kOptional,
                "time from the start of the job to its first step");
  fields.section("evaluation", kOptional, "evaluation on the GPUs of the run", [&] {
    fields.integer("every_steps", run.evaluation.every_steps, {0, 1'000'000'000}, kOptional,
                   "steps between two evaluations; 0: none");
    fields.number("duration_s", run.evaluation.duration, kDuration, kOptional, "time of each");
  });
  fields.section("stragglers", kOptional, "nodes that are slow for a while", [&] {
    fields.number("per_1000_node_days", run.stragglers.per_1000_node_days, kRate, kOptional,
                  "nodes that become slow, per 1,000 days of a node");
    fields.number("duration_s", run.stragglers.duration, kDuration, kOptional,
                  "mean time until such a node is replaced or as fast as before");
    fields.number("slowdown_ratio", run.stragglers.slowdown, {0.0, 100.0, false}, kOptional,
                  "extra time of a step while there is one");
  });
  fields.section("input", kOptional, "reading and preparing training data",
                 [&] { describe_input(run.input, fields); });
  fields.section("price", kOptional, "prices of renting one GPU",
                 [&] { describe_price(run.price, fields); });
  fields.number("power_usage_effectiveness_ratio", run.power_usage_effectiveness,
                {0.0, 10.0, false}, kOmissible,
                "power of the data centre over that of its computers; 0: that of the cluster");
  fields.list("stages", run.stages, kOmissible,
              "parts of the run with other settings than the plan's, in order; tokens that they "
              "leave are trained with the plan itself, last",
              [&](RunStage& stage) { describe(stage, fields); });
  fields.text("notes", run.notes, kOmissible, "what a reader of the profile should know");
}

RunSpec read_run(const json& document, const std::string& source) {
  ProblemList problems(source);
  RunSpec spec;
  std::vector<std::string> lines;
  read_figures(document, "", problems, spec.sources, lines,
               [&](FieldVisitor& fields) { describe(spec, fields); });
  if (problems.empty()) check(spec, problems);
  problems.throw_if_any();
  return spec;
}

ordered_json to_json(const RunSpec& spec) {
  ordered_json document = write_spec(spec, spec.sources);
  attach_sources(document, spec.sources);
  return document;
}

}  // namespace shardwright
