#include "calibration/traces/straggler_analysis.hpp"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "calibration/traces/trace_report.hpp"
#include "core/base/printable_text.hpp"

namespace shardwright::calibration {
namespace {

// Identifies a message or collective: its name, two coordinates that tell groups of one name apart,
// and its number in the group.
using TransferKey = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t>;

bool is_message(const std::string& op) {
  return op.ends_with("-send") || op.ends_with("-recv");
}

// The message or collective that the op belongs to; none if it computes. A message joins its sender
// and its receiver. The workers of a stage reduce gradients and gather parameters together, the
// stages of a replica reduce the gradients of a shared embedding, and all workers compute the norm
// of the gradients. Reductions over tensor-parallel ranks stay within a worker.
std::optional<TransferKey> transfer_of(const JobOp& op, const JobWorker& worker,
                                       std::int64_t stages) {
  if (is_message(op.op)) {
    const bool forward = op.op.starts_with("forward");
    const bool sends = op.op.ends_with("-send");
    const std::int64_t back = forward ? -1 : 1;
    const std::int64_t sender = sends ? worker.stage : (worker.stage + back + stages) % stages;
    return TransferKey{forward ? "forward" : "backward", sender, worker.replica, op.sequence};
  }
  if (op.op.starts_with("params-") || op.op.starts_with("grads-"))
    return TransferKey{op.op, worker.stage, -1, op.sequence};
  if (op.op.starts_with("embedding-grads-"))
    return TransferKey{op.op, -1, worker.replica, op.sequence};
  if (op.op.starts_with("optimizer-clip")) return TransferKey{op.op, -1, -1, op.sequence};
  return std::nullopt;
}

// A message or a collective: the ranks that take part, and when the last one is ready.
struct Transfer {
  std::size_t members = 0;
  double last_arrival = 0.0, end = 0.0;
  double duration() const { return std::max(0.0, end - last_arrival); }
};

struct StepOp {
  std::string op;
  double duration = 0.0;
  // Starts with the op before it.
  bool joins_before = false;
  // The index of its message or collective in the step; -1: it computes.
  std::int64_t transfer = -1;
};

struct StepRecord {
  std::map<JobWorker, std::vector<StepOp>> workers;
  std::vector<Transfer> transfers;
  double length = 0.0;
};

StepRecord step_record(const std::map<JobWorker, std::vector<JobOp>>& workers,
                       std::int64_t stages) {
  constexpr double kSameStart = 1e-7;
  StepRecord step;
  std::map<TransferKey, std::int64_t> numbers;
  double first = workers.begin()->second.front().start.value(), last = first;
  for (const auto& [worker, ops] : workers) {
    std::vector<StepOp>& list = step.workers[worker];
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const double start = ops[i].start.value(), end = start + ops[i].duration.value();
      first = std::min(first, start);
      last = std::max(last, end);
      StepOp& each = list.emplace_back();
      each.op = ops[i].op;
      each.duration = ops[i].duration.value();
      each.joins_before = i > 0 && is_message(ops[i].op) && is_message(ops[i - 1].op) &&
                          start - ops[i - 1].start.value() < kSameStart;
      const auto key = transfer_of(ops[i], worker, stages);
      if (!key) continue;
      const auto [known, is_new] =
          numbers.try_emplace(*key, static_cast<std::int64_t>(step.transfers.size()));
      if (is_new) step.transfers.push_back({0, start, end});
      each.transfer = known->second;
      Transfer& transfer = step.transfers[static_cast<std::size_t>(known->second)];
      ++transfer.members;
      transfer.last_arrival = std::max(transfer.last_arrival, start);
      transfer.end = std::max(transfer.end, end);
    }
  }
  step.length = last - first;
  return step;
}

// Returns the time of an op of a worker. `recorded` is the op's own time, or that of the transfer
// if it communicates.
using TimeOfOp =
    std::function<double(const JobWorker& worker, const std::string& op, double recorded)>;

class StepSimulation {
 public:
  StepSimulation(const StepRecord& step, const TimeOfOp& time) : step_(step), time_(time) {
    arrived_.resize(step.transfers.size());
    for (const auto& [worker, ops] : step.workers) places_.push_back({worker, &ops});
  }

  double length() {
    while (advance_all()) {
    }
    double last = 0.0;
    for (const Place& place : places_) last = std::max(last, place.now);
    return last;
  }

 private:
  struct Place {
    JobWorker worker;
    const std::vector<StepOp>* ops;
    std::size_t next = 0;
    double now = 0.0;
    // Where the worker has noted its arrival already.
    std::size_t arrived_up_to = 0;
  };
  struct Arrivals {
    std::size_t members = 0;
    double last = 0.0;
  };

  bool advance_all() {
    bool progress = false;
    for (Place& place : places_) progress |= advance(place, false);
    if (progress) return true;
    // Members that the record does not have: the first worker that waits goes on alone.
    return std::any_of(places_.begin(), places_.end(),
                       [this](Place& place) { return advance(place, true); });
  }

  static std::size_t end_of_batch(const Place& place) {
    std::size_t end = place.next + 1;
    while (end < place.ops->size() && (*place.ops)[end].joins_before) ++end;
    return end;
  }

  bool advance(Place& place, bool alone) {
    bool progress = false;
    while (place.next < place.ops->size()) {
      const std::size_t end = end_of_batch(place);
      if (place.arrived_up_to < end) {
        for (std::size_t i = place.next; i < end; ++i) arrive((*place.ops)[i], place.now);
        place.arrived_up_to = end;
        progress = true;
      }
      double latest = place.now;
      bool is_ready = true;
      for (std::size_t i = place.next; i < end; ++i) {
        const StepOp& op = (*place.ops)[i];
        if (op.transfer < 0) {
          latest = std::max(latest, place.now + time_(place.worker, op.op, op.duration));
          continue;
        }
        const auto number = static_cast<std::size_t>(op.transfer);
        is_ready &= arrived_[number].members == step_.transfers[number].members;
        latest =
            std::max(latest, arrived_[number].last +
                                 time_(place.worker, op.op, step_.transfers[number].duration()));
      }
      if (!is_ready && !alone) return progress;
      alone = false;
      place.now = latest;
      place.next = end;
      progress = true;
    }
    return progress;
  }

  void arrive(const StepOp& op, double now) {
    if (op.transfer < 0) return;
    Arrivals& arrivals = arrived_[static_cast<std::size_t>(op.transfer)];
    ++arrivals.members;
    arrivals.last = std::max(arrivals.last, now);
  }

  const StepRecord& step_;
  const TimeOfOp& time_;
  std::vector<Place> places_;
  std::vector<Arrivals> arrived_;
};

// Returns for each name of an op the mean time if it computes, and the median time of the transfer
// if it communicates.
std::map<std::string, double> ideal_times(const std::vector<StepRecord>& steps) {
  std::map<std::string, std::vector<Seconds>> transfers;
  std::map<std::string, std::pair<double, double>> sums;
  for (const StepRecord& step : steps)
    for (const auto& [worker, ops] : step.workers)
      for (const StepOp& op : ops) {
        if (op.transfer >= 0) {
          transfers[op.op].emplace_back(
              step.transfers[static_cast<std::size_t>(op.transfer)].duration());
        } else {
          sums[op.op].first += op.duration;
          sums[op.op].second += 1.0;
        }
      }
  std::map<std::string, double> times;
  for (const auto& [op, sum] : sums) times[op] = sum.first / sum.second;
  for (auto& [op, values] : transfers) times[op] = median_of(std::move(values)).value();
  return times;
}

// All workers compute as many forward and backward passes: that of each microbatch and chunk.
bool is_incomplete(const StepRecord& step) {
  std::set<std::map<std::string, std::int64_t>> counts;
  for (const auto& [worker, ops] : step.workers) {
    std::map<std::string, std::int64_t> of_worker;
    for (const StepOp& op : ops)
      if (op.transfer < 0) ++of_worker[op.op];
    counts.insert(std::move(of_worker));
  }
  return counts.size() > 1;
}

class Analyser {
 public:
  explicit Analyser(const JobRecord& record) {
    std::int64_t stages = 1;
    for (const auto& [number, workers] : record.steps)
      for (const auto& [worker, ops] : workers) stages = std::max(stages, worker.stage + 1);
    for (const auto& [number, workers] : record.steps)
      steps_.push_back(step_record(workers, stages));
    ideal_ = ideal_times(steps_);
  }

  StragglerAnalysis take() {
    StragglerAnalysis result;
    std::set<std::int64_t> stages, replicas;
    std::set<JobWorker> workers;
    std::set<std::string> ops;
    double recorded = 0.0;
    for (const StepRecord& step : steps_) {
      recorded += step.length;
      result.incomplete_steps += is_incomplete(step) ? 1 : 0;
      for (const auto& [worker, list] : step.workers) {
        stages.insert(worker.stage);
        replicas.insert(worker.replica);
        workers.insert(worker);
        for (const StepOp& op : list) ops.insert(op.op);
      }
    }
    const auto n = static_cast<double>(steps_.size());
    result.steps = static_cast<std::int64_t>(steps_.size());
    result.stages = static_cast<std::int64_t>(stages.size());
    result.replicas = static_cast<std::int64_t>(replicas.size());
    const double ideal = sum([](const JobWorker&, const std::string&) { return false; });
    const double replayed = sum([](const JobWorker&, const std::string&) { return true; });
    result.recorded = Seconds(recorded / n);
    result.replayed = Seconds(replayed / n);
    result.ideal = Seconds(ideal / n);
    for (const std::int64_t stage : stages)
      result.by_stage[stage] =
          sum([&](const JobWorker& w, const std::string&) { return w.stage == stage; }) / ideal;
    for (const std::int64_t replica : replicas)
      result.by_replica[replica] =
          sum([&](const JobWorker& w, const std::string&) { return w.replica == replica; }) / ideal;
    for (const std::string& op : ops)
      result.by_op[op] =
          sum([&](const JobWorker&, const std::string& name) { return name == op; }) / ideal;
    for (const JobWorker& worker : workers)
      result.by_worker[worker] =
          sum([&](const JobWorker& w, const std::string&) { return w == worker; }) / ideal;
    return result;
  }

 private:
  // The steps together, with only the chosen ops as recorded.
  template <class Choice>
  double sum(Choice is_recorded) const {
    const TimeOfOp time = [&](const JobWorker& worker, const std::string& op, double recorded) {
      return is_recorded(worker, op) ? recorded : ideal_.at(op);
    };
    double length = 0.0;
    for (const StepRecord& step : steps_) length += StepSimulation(step, time).length();
    return length;
  }

  std::vector<StepRecord> steps_;
  std::map<std::string, double> ideal_;
};

}  // namespace

StragglerAnalysis analyse_stragglers(const JobRecord& record) {
  StragglerAnalysis analysis = Analyser(record).take();
  analysis.file = record.file;
  return analysis;
}

nlohmann::ordered_json to_json(const StragglerAnalysis& analysis) {
  const auto numbered = [](const std::map<std::int64_t, double>& slowdowns, const char* key) {
    auto array = nlohmann::ordered_json::array();
    for (const auto& [number, slowdown] : slowdowns)
      array.push_back({{key, number}, {"slowdown_ratio", slowdown}});
    return array;
  };
  auto ops = nlohmann::ordered_json::array(), workers = nlohmann::ordered_json::array();
  for (const auto& [op, slowdown] : analysis.by_op)
    ops.push_back({{"op", printable(op)}, {"slowdown_ratio", slowdown}});
  for (const auto& [worker, slowdown] : analysis.by_worker)
    workers.push_back(
        {{"stage", worker.stage}, {"dp_rank", worker.replica}, {"slowdown_ratio", slowdown}});
  return {{"path", printable(analysis.file)},
          {"steps", analysis.steps},
          {"stages", analysis.stages},
          {"replicas", analysis.replicas},
          {"incomplete_steps", analysis.incomplete_steps},
          {"recorded_step_s", analysis.recorded.value()},
          {"replayed_step_s", analysis.replayed.value()},
          {"ideal_step_s", analysis.ideal.value()},
          {"slowdown_ratio", analysis.slowdown()},
          {"by_stage", numbered(analysis.by_stage, "stage")},
          {"by_dp_rank", numbered(analysis.by_replica, "dp_rank")},
          {"by_op", std::move(ops)},
          {"by_worker", std::move(workers)}};
}

}  // namespace shardwright::calibration
