#include "sim/jobs/jobs_simulation.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <variant>

#include "core/lowering/lowering.hpp"
#include "sim/jobs/job_network.hpp"
#include "sim/jobs/storage_replay.hpp"
#include "sim/step/folded_replay.hpp"
#include "sim/step/full_replay.hpp"
#include "sim/step/prices.hpp"
#include "sim/step/rank_replay.hpp"
#include "sim/step/shared_transfers.hpp"

namespace shardwright::sim {
namespace {

// Transfers that end between two looks at the stop token.
constexpr std::uint64_t kEndsBetweenLooks = 1024;

// A training job that is lowered and priced for the nodes that it lies on.
struct PricedJob {
  Program program;
  Prices prices;
  FoldedReplay alike;
  FullOptions options;

  PricedJob(const TrainingJob& job, const ClusterSpec& cluster)
      : program(lower(job.scenario.model, job.scenario.plan, job.scenario.stack)),
        prices(price(program, cluster, job.scenario.stack)),
        alike(replay_folded(program, prices.without_shared_nics(), {.keep_finish_times = true})) {
    options.contention = true;
    check_replay_memory(program);
  }
};

using PricedJobs = std::vector<std::shared_ptr<const PricedJob>>;

// A job on its way.
struct RunningJob {
  explicit RunningJob(std::variant<RankReplay, StorageReplay> given) : replay(std::move(given)) {}

  std::variant<RankReplay, StorageReplay> replay;
  double start = 0.0;
  // The least time from the start of a step to that of the next one.
  double every = 0.0;
  // The steps that count and that are needed.
  std::int64_t count = 0, needed = 1;
  // The start of the step under way.
  double began = 0.0;
  Seconds sum, longest;
  // The job shares no links, so that one step says all.
  bool is_over = false;

  double share_done() const {
    if (is_over) return 1.0;
    return std::min(1.0, static_cast<double>(count) / static_cast<double>(needed));
  }
  void take(Seconds time) {
    ++count;
    sum += time;
    longest = std::max(longest, time);
  }
};

// Some of the jobs on the network; a storage traffic's burst counts as a step here.
class JobsRun {
 public:
  JobsRun(const JobSet& jobs, const JobNetwork& network, const PricedJobs& priced,
          const JobsOptions& options)
      : jobs_(jobs),
        network_(network),
        priced_(priced),
        options_(options),
        transfers_(network.capacities()) {}

  void add(std::size_t job) {
    const auto number = static_cast<std::uint32_t>(running_.size());
    if (job < jobs_.training.size()) {
      const PricedJob& priced = *priced_[job];
      running_.emplace_back(RankReplay(priced.program, network_.cluster_of(job), priced.prices,
                                       priced.alike, priced.options,
                                       {network_.links_of(job), &transfers_, number}));
      running_.back().start = jobs_.training[job].start.value();
      running_.back().needed = jobs_.steps;
    } else {
      const StorageTraffic& traffic = jobs_.storage[job - jobs_.training.size()];
      running_.emplace_back(StorageReplay(traffic, network_, transfers_, number));
      running_.back().start = traffic.start.value();
      running_.back().every = traffic.every.value();
    }
    all_started_ = std::max(all_started_, running_.back().start);
  }

  // Returns false if it was stopped.
  bool run() {
    if (options_.stop.stop_requested()) return false;
    for (RunningJob& job : running_) {
      begin(job, job.start);
      if (!go_on(job, false)) return false;
    }
    while (!is_enough()) {
      const auto finished = transfers_.next();
      if (!finished || !look_around()) break;
      now_ = finished->time;
      RunningJob& job = running_[finished->owner.job];
      std::visit([&](auto& replay) { replay.finish_transfer(*finished); }, job.replay);
      if (!go_on(job, true)) return false;
    }
    return is_enough();
  }

  JobTimes times_of(std::size_t number, Seconds alone) const {
    const RunningJob& job = running_[number];
    return {alone, job.sum / static_cast<double>(job.count), job.longest, job.count};
  }

  Seconds now() const { return Seconds(now_); }

  // The bytes that a job has moved over each link.
  std::vector<double> moved(std::size_t number) const {
    std::vector<double> bytes(network_.capacities().size());
    std::visit([&](const auto& replay) { replay.add_moved(bytes); }, running_[number].replay);
    return bytes;
  }

 private:
  static void begin(RunningJob& job, double start) {
    job.began = start;
    std::visit([&](auto& replay) { replay.begin(start); }, job.replay);
  }

  // Lets the job go on, with steps to come, until it waits for a transfer. `waited`: it has done so
  // in this step. Returns false if the caller wants to stop.
  bool go_on(RunningJob& job, bool waited) {
    while (std::visit([](auto& replay) { return replay.go_on(); }, job.replay)) {
      if (!std::visit([](const auto& replay) { return replay.is_over(); }, job.replay)) return true;
      const double end = std::visit([](const auto& replay) { return replay.end(); }, job.replay);
      job.is_over = !waited;
      if (job.is_over || job.began >= all_started_) job.take(Seconds(end - job.began));
      if (job.is_over) return true;
      waited = false;
      begin(job, std::max(end, job.began + job.every));
    }
    return false;
  }

  bool is_enough() const {
    return std::all_of(running_.begin(), running_.end(),
                       [](const RunningJob& job) { return job.share_done() >= 1.0; });
  }

  bool look_around() {
    if (++ends_ % kEndsBetweenLooks != 0) return true;
    double least = 1.0;
    for (const RunningJob& job : running_) least = std::min(least, job.share_done());
    if (options_.progress) options_.progress(least);
    return !options_.stop.stop_requested();
  }

  const JobSet& jobs_;
  const JobNetwork& network_;
  const PricedJobs& priced_;
  const JobsOptions& options_;
  SharedTransfers transfers_;
  std::vector<RunningJob> running_;
  // The start of the job that starts last.
  double all_started_ = 0.0;
  double now_ = 0.0;
  std::uint64_t ends_ = 0;
};

// The links that several jobs use, the fullest one first. A node's ports count as one link.
std::vector<SharedLink> shared_links(const JobsRun& run, std::size_t jobs,
                                     const JobNetwork& network) {
  std::vector<SharedLink> links;
  std::map<std::string, std::size_t> places;
  std::vector<std::size_t> place_of_link;
  for (LinkIndex link = 0; link < network.capacities().size(); ++link) {
    const std::string name = network.name_of(link);
    place_of_link.push_back(places.try_emplace(name, links.size()).first->second);
    if (place_of_link.back() == links.size()) links.push_back({name, {}, {}});
    links[place_of_link.back()].capacity += network.capacities()[link];
  }
  for (std::size_t job = 0; job < jobs; ++job) {
    std::vector<Bytes> moved(links.size());
    const std::vector<double> by_link = run.moved(job);
    for (std::size_t link = 0; link < by_link.size(); ++link)
      moved[place_of_link[link]] += Bytes(by_link[link]);
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (moved[i] > Bytes()) links[i].shares.push_back({job, moved[i] / run.now()});
    }
  }
  std::erase_if(links, [](const SharedLink& link) { return link.shares.size() < 2; });
  std::stable_sort(links.begin(), links.end(), [](const SharedLink& a, const SharedLink& b) {
    return a.load() / a.capacity > b.load() / b.capacity;
  });
  return links;
}

}  // namespace

BytesPerSecond SharedLink::load() const {
  return std::accumulate(
      shares.begin(), shares.end(), BytesPerSecond(),
      [](BytesPerSecond sum, const LinkShare& share) { return sum + share.rate; });
}

JobsResult simulate_jobs(const JobSet& jobs, const JobsOptions& options) {
  const JobNetwork network(jobs);
  PricedJobs alone, beside;
  JobsResult result;
  for (std::size_t i = 0; i < jobs.training.size(); ++i) {
    ClusterSpec cluster = network.cluster_of(i);
    alone.push_back(std::make_shared<PricedJob>(jobs.training[i], cluster));
    beside.push_back(alone.back());
    if (network.has_reductions(i)) continue;
    result.without_reductions.push_back(i);
    cluster.fabric.in_network_reduction = false;
    beside.back() = std::make_shared<PricedJob>(jobs.training[i], cluster);
  }
  JobSet once = jobs;
  once.steps = 1;
  JobsRun all(jobs, network, beside, options);
  std::vector<Seconds> times_alone;
  for (std::size_t job = 0; job < jobs.count(); ++job) {
    all.add(job);
    JobsRun single(once, network, alone, options);
    single.add(job);
    result.cancelled = result.cancelled || !single.run();
    if (result.cancelled) return result;
    times_alone.push_back(single.times_of(0, Seconds()).mean);
  }
  result.cancelled = !all.run();
  if (result.cancelled) return result;
  for (std::size_t job = 0; job < jobs.count(); ++job)
    result.jobs.push_back(all.times_of(job, times_alone[job]));
  result.links = shared_links(all, jobs.count(), network);
  result.simulated = all.now();
  return result;
}

}  // namespace shardwright::sim
