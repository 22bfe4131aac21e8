#include "sim/run/run_simulation.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/engine/event_queue.hpp"
#include "sim/run/failure_source.hpp"
#include "sim/run/progress.hpp"
#include "sim/run/run_history.hpp"

namespace shardwright::sim {
namespace {

// A run that takes so many times its work, and more interruptions than any run of a year has, makes
// no progress worth waiting for.
constexpr double kMostSlowdown = 20.0;
constexpr std::int64_t kMostInterruptions = 50'000;

enum class EventKind : std::uint8_t { Failure, Repair, ReplicaRepair, PhaseEnd };

struct RunEvent {
  EventKind kind;
  FailureCause cause;
};

enum class Phase : std::uint8_t { Startup, Running, Detecting, Waiting, Restarting };

// One run. Phases follow each other as a run's do: start-up or restart, running, then after a
// failure detection, waiting if there is no spare node, and restart. A failure in any other phase
// than Running begins the recovery anew.
class SimulatedRun {
 public:
  // Writes what happens into `history`, unless that is null.
  SimulatedRun(const RunModel& model, double step_factor, double rate_factor, std::uint64_t seed,
               std::int64_t index, RunHistory* history)
      : model_(model),
        work_(model.work_at(step_factor)),
        spares_(model.spares),
        spare_replicas_(model.spare_replicas),
        history_(history) {
    progress_ = Progress(total(work_), model.interval, model.checkpoint);
    limit_ = kMostSlowdown * (progress_.end() + model.startup);
    queue_.reserve(kEnumCount<FailureCause> + 64);
    sources_.reserve(kEnumCount<FailureCause>);
    for (const FailureCause cause : enumerators<FailureCause>()) {
      sources_.emplace_back(model.failures[cause], rate_factor,
                            RandomStream(seed, static_cast<std::uint64_t>(index), index_of(cause)));
      schedule_failure(cause);
    }
  }

  RunOutcome run() {
    if (history_ != nullptr) {
      history_->running_time = progress_.end();
      history_->running = running_times();
      history_->checkpoint_share = progress_.cycle() / progress_.end();
    }
    begin(Phase::Startup, model_.startup);
    while (!done_ && !given_up_) {
      const auto event = queue_.pop();
      switch (event.payload.kind) {
        case EventKind::Failure:
          fail(event.payload.cause);
          break;
        case EventKind::Repair:
          ++spares_;
          if (phase_ == Phase::Waiting && speed_now() > 0.0) restart();
          if (phase_ == Phase::Running && speed_now() > speed_) grow();
          break;
        case EventKind::ReplicaRepair:
          ++spare_replicas_;
          break;
        case EventKind::PhaseEnd:
          end_phase();
          break;
      }
    }
    return outcome();
  }

 private:
  void schedule_failure(FailureCause cause) {
    const auto next = sources_[index_of(cause)].next(model_);
    if (!next) return;
    next_[cause] = *next;
    queue_.schedule_at(next->time, EventPriority::Completion, {EventKind::Failure, cause});
  }

  // Books the time since the phase began.
  void book() {
    const Seconds passed = queue_.now() - since_;
    const double before = share_done();
    spend(passed);
    if (history_ != nullptr && passed > Seconds())
      history_->spans.push_back({part_of_phase(), since_, queue_.now(), before, share_done()});
    since_ = queue_.now();
  }

  RunPart part_of_phase() const {
    constexpr EnumArray<Phase, RunPart> kParts{
        {RunPart::Startup, RunPart::Step, RunPart::Detection, RunPart::Waiting, RunPart::Restart}};
    return phase_ == Phase::Detecting ? detection_part_ : kParts[phase_];
  }

  // The share of the work that is done.
  double share_done() const { return progress_.place() / progress_.end(); }

  void spend(Seconds passed) {
    if (phase_ != Phase::Running) {
      times_[part_of_phase()] += passed;
      return;
    }
    progress_.advance(passed * speed_);
    times_[RunPart::Waiting] += passed * (1.0 - speed_);
  }

  void begin(Phase phase, Seconds duration) {
    phase_ = phase;
    queue_.cancel(phase_end_);
    if (phase == Phase::Waiting) return;
    phase_end_ = queue_.schedule_at(queue_.now() + duration, EventPriority::Start,
                                    {EventKind::PhaseEnd, FailureCause::Gpu});
    phase_until_ = queue_.now() + duration;
  }

  void end_phase() {
    book();
    switch (phase_) {
      case Phase::Startup:
      case Phase::Restarting:
        from_store_ = from_replica_ = swapped_ = false;
        began_ = true;
        speed_ = speed_now();
        begin(Phase::Running, progress_.remaining() / speed_);
        break;
      case Phase::Running:
        done_ = true;
        break;
      case Phase::Detecting:
        if (manual_ > Seconds()) {
          detection_part_ = RunPart::Detection;
          begin(Phase::Detecting, std::exchange(manual_, Seconds()));
          break;
        }
        if (saving_) progress_.save();
        saving_ = false;
        [[fallthrough]];
      case Phase::Waiting:
        speed_now() > 0.0 ? restart() : begin(Phase::Waiting, Seconds());
        break;
    }
  }

  // The share of the full speed that the nodes at hand give; zero if the run has to wait.
  double speed_now() const {
    if (spares_ >= 0) return 1.0;
    const auto replicas = static_cast<double>(model_.replicas);
    const auto lacking = static_cast<std::size_t>(-spares_);
    if (lacking <= model_.shrunk_speeds.size()) return model_.shrunk_speeds[lacking - 1];
    const double lost =
        std::ceil(static_cast<double>(-spares_) * model_.replicas_of_node * (1.0 - 1e-12));
    const double left = std::max(0.0, (replicas - lost) / replicas);
    return model_.shrunk_speeds.empty() ? left : std::min(left, model_.shrunk_speeds.back());
  }

  // Takes repaired nodes in, after a save.
  void grow() {
    book();
    saving_ = true;
    detection_part_ = RunPart::Checkpoint;
    begin(Phase::Detecting, model_.checkpoint.save);
  }

  void restart() {
    book();
    // A run that has not begun starts up again.
    if (!began_) {
      begin(Phase::Startup, model_.startup);
      return;
    }
    if (swapped_) {
      begin(Phase::Restarting, model_.swap);
      return;
    }
    begin(Phase::Restarting, restart_time());
  }

  Seconds restart_time() const {
    const CheckpointCost& checkpoint = model_.checkpoint;
    return model_.restart + (from_store_     ? checkpoint.load_stored
                             : from_replica_ ? model_.load_replica
                                             : checkpoint.load);
  }

  // True if the failure stops or spoils something. Only a running job has results to corrupt, and a
  // job that waits for nodes has no processes: it only has one node less where one breaks or is
  // taken away.
  bool strikes(const Interruption& hit, const FailureProcess& process) const {
    if (process.silent) return phase_ == Phase::Running;
    return phase_ != Phase::Waiting || hit.replaced;
  }

  void fail(FailureCause cause) {
    const Interruption hit = next_[cause];
    const FailureProcess& process = model_.failures[cause];
    if (!strikes(hit, process)) return schedule_failure(cause);
    book();
    ++interruptions_[cause];
    if (history_ != nullptr) history_->interruptions.push_back({cause, queue_.now(), Seconds()});
    schedule_failure(cause);
    const Seconds repair = process.repair > Seconds() ? process.repair : model_.repair;
    // The states of the moment are there: on all replicas, or on all but the one that is replaced.
    const bool whole = phase_ == Phase::Running || swapped_;
    swapped_ = whole && can_swap(hit, process);
    if (swapped_) {
      --spare_replicas_;
      queue_.schedule_at(queue_.now() + repair * hit.repair, EventPriority::Completion,
                         {EventKind::ReplicaRepair, cause});
      return end_failure(hit, process);
    }
    lose_work(hit, process, whole);
    if (hit.replaced) {
      const std::int64_t nodes = nodes_of(hit, process);
      spares_ -= nodes;
      for (std::int64_t i = 0; i < nodes; ++i) {
        queue_.schedule_at(queue_.now() + repair * hit.repair, EventPriority::Completion,
                           {EventKind::Repair, cause});
      }
    }
    end_failure(hit, process);
  }

  // The nodes that stop at once.
  std::int64_t nodes_of(const Interruption& hit, const FailureProcess& process) const {
    return hit.correlated ? std::max(process.nodes, model_.correlated_nodes) : process.nodes;
  }

  // A spare replica takes the place of one that lacks a node, while the others hold all states.
  bool can_swap(const Interruption& hit, const FailureProcess& process) const {
    return spare_replicas_ > 0 && hit.replaced && nodes_of(hit, process) == 1 && !process.silent &&
           !process.planned;
  }

  void end_failure(const Interruption& hit, const FailureProcess& process) {
    detect(hit, process);
    const bool too_often = ++failures_ > kMostInterruptions;
    given_up_ = too_often || queue_.now() > limit_;
  }

  void lose_work(const Interruption& hit, const FailureProcess& process, bool whole) {
    if (process.planned) {
      saving_ = saving_ || whole;
      return;
    }
    saving_ = false;
    const bool loses_copies = nodes_of(hit, process) >= model_.nodes_losing_copies;
    if (model_.from_replicas && !loses_copies && !process.silent) {
      progress_.keep();
      from_replica_ = true;
      return;
    }
    // Replicas agree on wrong results, and copies in the hosts' memory are overwritten with them.
    const bool spoils_copies =
        process.silent &&
        (model_.from_replicas ||
         (model_.checkpoint.in_host_memory && process.detection > progress_.to_next_checkpoint()));
    const bool severe = loses_copies || spoils_copies;
    from_replica_ = false;
    from_store_ = from_store_ || severe;
    const Seconds lost = progress_.go_back(severe);
    times_[RunPart::LostWork] += lost;
    if (history_ != nullptr) history_->interruptions.back().lost = lost;
  }

  void detect(const Interruption& hit, const FailureProcess& process) {
    // Nobody has to find out what was announced.
    Seconds time = process.planned     ? (saving_ ? model_.checkpoint.save : Seconds())
                   : process.announced ? Seconds()
                                       : process.detection;
    const bool found_out = !process.planned && !process.announced;
    const Seconds manual = hit.manual && found_out ? model_.manual_time : Seconds();
    // A job with wrong results comes back after a failure, and goes on in vain.
    if (phase_ == Phase::Detecting && detection_part_ == RunPart::LostWork)
      return begin(Phase::Detecting, phase_until_ - queue_.now() + time + manual + restart_time());
    if (process.silent) {
      manual_ = manual;
    } else {
      time += manual;
    }
    // A failure that comes while an earlier one is being detected does not shorten that.
    if (phase_ == Phase::Detecting && phase_until_ > queue_.now() + time) return;
    detection_part_ = process.planned  ? RunPart::Checkpoint
                      : process.silent ? RunPart::LostWork
                                       : RunPart::Detection;
    begin(Phase::Detecting, time);
  }

  RunOutcome outcome() {
    RunOutcome outcome;
    outcome.times = times_;
    outcome.wall = queue_.now();
    outcome.interruptions = interruptions_;
    outcome.finished = done_;
    if (!done_) {
      outcome.times[RunPart::Step] += progress_.place();
      return outcome;
    }
    const RunTimes running = running_times();
    for (const RunPart part : enumerators<RunPart>()) outcome.times[part] += running[part];
    return outcome;
  }

  // The uses of the time of a run that nothing interrupts.
  RunTimes running_times() const {
    RunTimes times = work_;
    times[RunPart::Checkpoint] += progress_.stalls();
    return times;
  }

  const RunModel& model_;
  RunTimes work_;
  Progress progress_;
  std::vector<FailureSource> sources_;
  EnumArray<FailureCause, Interruption> next_{};
  EventQueue<RunEvent> queue_;
  EventId phase_end_;
  Seconds phase_until_;
  Phase phase_ = Phase::Startup;
  RunPart detection_part_ = RunPart::Detection;
  // What people do once wrong results are noticed.
  Seconds manual_;
  Seconds since_;
  Seconds limit_;
  // Below zero: nodes that the job lacks.
  std::int64_t spares_;
  std::int64_t spare_replicas_;
  // The first step has begun.
  bool began_ = false;
  // The state in host memory is gone, or other replicas have it.
  bool from_store_ = false, from_replica_ = false;
  // A spare replica comes in.
  bool swapped_ = false;
  // The state is being saved before a stop; a failure in that time loses it.
  bool saving_ = false;
  // Of the running phase, over that with all replicas.
  double speed_ = 1.0;
  RunTimes times_{};
  EnumArray<FailureCause, std::int64_t> interruptions_{};
  std::int64_t failures_ = 0;
  bool done_ = false, given_up_ = false;
  RunHistory* history_;
};

// The quantile of the normal distribution, by bisection.
double normal_quantile(double probability) {
  double low = -40.0, high = 40.0;
  while (high - low > 1e-12) {
    const double middle = 0.5 * (low + high);
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < probability ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

RunOutcome simulated(const RunModel& model, const RunOptions& options, std::int64_t index,
                     RunHistory* history) {
  // A stream of its own, whatever the causes are.
  RandomStream fleet(options.seed, static_cast<std::uint64_t>(index), kEnumCount<FailureCause>);
  const double rate_factor = std::exp(model.rate_spread * fleet.normal());
  return SimulatedRun(model, step_factor(model, options.runs, index), rate_factor, options.seed,
                      index, history)
      .run();
}

RunStatistics statistics(const std::vector<RunOutcome>& outcomes) {
  RunStatistics all;
  all.runs = static_cast<std::int64_t>(outcomes.size());
  std::vector<double> walls, interruptions;
  for (const RunOutcome& outcome : outcomes) {
    if (!outcome.finished) {
      ++all.unfinished;
      for (std::vector<double>* of : {&walls, &interruptions})
        of->push_back(std::numeric_limits<double>::infinity());
      continue;
    }
    interruptions.push_back(static_cast<double>(outcome.total_interruptions()));
    walls.push_back(outcome.wall.value());
    for (const RunPart part : enumerators<RunPart>()) all.mean[part] += outcome.times[part];
    for (const FailureCause cause : enumerators<FailureCause>())
      all.by_cause[cause] += static_cast<double>(outcome.interruptions[cause]);
  }
  const auto finished = static_cast<double>(std::max<std::int64_t>(1, all.runs - all.unfinished));
  for (Seconds& part : all.mean) part = part / finished;
  for (double& count : all.by_cause) count /= finished;
  all.wall = percentiles(std::move(walls));
  all.interruptions = percentiles(std::move(interruptions));
  return all;
}

}  // namespace

double step_factor(const RunModel& model, std::int64_t runs, std::int64_t index) {
  if (model.step_low == 1.0 && model.step_high == 1.0) return 1.0;
  const double z = normal_quantile((static_cast<double>(index) + 0.5) / static_cast<double>(runs));
  static const double kNinth = normal_quantile(0.9);
  return z < 0.0 ? std::pow(model.step_low, -z / kNinth) : std::pow(model.step_high, z / kNinth);
}

Seconds input_stall(const std::vector<InputWait>& waits, double factor) {
  Seconds stall;
  for (const InputWait& each : waits)
    stall += each.steps * std::max(Seconds(), each.input - factor * each.step);
  return stall;
}

RunTimes RunModel::work_at(double factor) const {
  RunTimes times = work;
  if (factor == 1.0) return times;
  for (const RunPart part : {RunPart::Step, RunPart::Straggler}) times[part] *= factor;
  if (!input_waits.empty()) times[RunPart::InputStall] = input_stall(input_waits, factor);
  return times;
}

Seconds total(const RunTimes& times) {
  return std::accumulate(times.begin(), times.end(), Seconds());
}

std::int64_t RunOutcome::total_interruptions() const {
  return std::accumulate(interruptions.begin(), interruptions.end(), std::int64_t{0});
}

Percentiles percentiles(std::vector<double> sample) {
  std::ranges::sort(sample);
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(sample.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const double rest = place - static_cast<double>(below);
    // Infinite neighbours have no mean.
    if (rest == 0.0 || below + 1 == sample.size()) return sample[below];
    if (std::isinf(sample[below + 1])) return sample[below + 1];
    return sample[below] + rest * (sample[below + 1] - sample[below]);
  };
  return {at(0.1), at(0.5), at(0.9)};
}

RunOutcome simulate_run(const RunModel& model, const RunOptions& options, std::int64_t index) {
  return simulated(model, options, index, nullptr);
}

RunHistory simulate_history(const RunModel& model, const RunOptions& options, std::int64_t index) {
  RunHistory history;
  history.outcome = simulated(model, options, index, &history);
  return history;
}

RunStatistics simulate_runs(const RunModel& model, const RunOptions& options) {
  std::vector<RunOutcome> outcomes(static_cast<std::size_t>(options.runs));
  tbb::task_arena arena(options.threads > 0 ? options.threads : tbb::task_arena::automatic);
  arena.execute([&] {
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, outcomes.size(), 16),
                      [&](const tbb::blocked_range<std::size_t>& range) {
                        if (options.stop.stop_requested()) return;
                        for (std::size_t i = range.begin(); i < range.end(); ++i) {
                          outcomes[i] = simulate_run(model, options, static_cast<std::int64_t>(i));
                        }
                      });
  });
  return statistics(outcomes);
}

}  // namespace shardwright::sim
