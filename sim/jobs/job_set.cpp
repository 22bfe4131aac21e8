#include "sim/jobs/job_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/jobs_json.hpp"
#include "sim/cost/placement.hpp"
#include "sim/jobs/placement_advice.hpp"
#include "sim/step/node_links.hpp"

namespace shardwright::sim {
namespace {

constexpr std::int64_t kMostNodes = 1'000'000;

// Reads the lists of nodes of a document and finds out who has which.
class NodeLists {
 public:
  NodeLists(const ClusterSpec& cluster, ProblemList& problems)
      : nodes_(count_nodes(cluster)), problems_(problems) {}

  std::vector<std::int64_t> read(const std::string& where, const std::string& text) {
    if (text.empty()) return {};
    const auto list = node_list(text, nodes_ - 1);
    if (list) return *list;
    problems_.add(where, fmt::format("\"{}\"", text),
                  fmt::format("nodes, each once, as in \"0-15,32\", from 0 to {}", nodes_ - 1));
    return {};
  }

  // Gives the nodes to the owner, who is alone on them.
  void take(const std::string& where, const std::string& owner,
            const std::vector<std::int64_t>& nodes) {
    for (const std::int64_t node : nodes) {
      const auto [taken, is_free] = owners_.try_emplace(node, owner);
      if (is_free) continue;
      problems_.add(where, fmt::format("node {}, which \"{}\" has", node, taken->second),
                    "a node of its own");
      return;
    }
  }

  // Adds a problem if a node that uses the servers is one of them.
  void refuse_servers(const std::string& where, const std::vector<std::int64_t>& nodes,
                      const std::vector<std::int64_t>& servers) {
    for (const std::int64_t node : nodes) {
      if (std::find(servers.begin(), servers.end(), node) == servers.end()) continue;
      problems_.add(where, fmt::format("node {}, which is a server", node), "other nodes");
      return;
    }
  }

 private:
  std::int64_t nodes_;
  ProblemList& problems_;
  std::map<std::int64_t, std::string> owners_;
};

std::string plan_path(const std::string& plan, const std::string& file_or_dash) {
  const std::filesystem::path path(plan);
  if (path.is_absolute() || file_or_dash == "-") return plan;
  return (std::filesystem::path(file_or_dash).parent_path() / path).string();
}

void check_cluster(const ClusterSpec& cluster, const ClusterSpec& first, const std::string& where,
                   ProblemList& problems) {
  if (cluster.fabric.levels.empty()) {
    problems.add(where,
                 fmt::format("the fabric \"{}\" of cluster \"{}\"", name_of(cluster.fabric.kind),
                             cluster.name),
                 "a fabric of switches, whose links jobs can share");
  }
  if (cluster.node == first.node && cluster.fabric == first.fabric) return;
  problems.add(where, fmt::format("cluster \"{}\"", cluster.name),
               fmt::format("nodes and fabric of \"{}\", the first job's cluster", first.name));
}

std::vector<TrainingJob> load_training(const JobsSpec& spec, const std::string& file_or_dash,
                                       ProblemList& problems) {
  std::vector<TrainingJob> jobs;
  for (const TrainingJobSpec& job : spec.training) {
    const std::string where = fmt::format("/training/{}/plan", jobs.size());
    jobs.push_back({.name = job.name, .scenario = {}, .nodes = {}, .start = job.start});
    jobs.back().scenario = load_scenario_of_one_pool(plan_path(job.plan, file_or_dash));
    const Scenario& scenario = jobs.back().scenario;
    check_cluster(scenario.cluster, jobs.front().scenario.cluster, where, problems);
    if (scenario.plan.replicas.has_servers())
      problems.add(where, "a plan with parameter servers", "replicas that agree by collectives");
  }
  return jobs;
}

void read_training_nodes(const JobsSpec& spec, NodeLists& lists, ProblemList& problems,
                         std::vector<TrainingJob>& jobs) {
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    TrainingJob& job = jobs[i];
    const std::string where = fmt::format("/training/{}/nodes", i);
    job.nodes = lists.read(where, spec.training[i].nodes);
    lists.take(where, job.name, job.nodes);
    const std::int64_t needed = count_nics(job.scenario.plan, job.scenario.cluster).nodes;
    if (job.nodes.empty() || std::ssize(job.nodes) == needed) continue;
    problems.add(where, format_plural(std::ssize(job.nodes), "node"),
                 fmt::format("{}, which the {} of the plan fill", needed,
                             format_plural(job.scenario.plan.world_size(), "rank")));
  }
}

std::vector<StorageTraffic> read_storage(const JobsSpec& spec, NodeLists& lists,
                                         ProblemList& problems) {
  std::vector<StorageTraffic> all;
  for (const StorageTrafficSpec& given : spec.storage) {
    const std::string where = fmt::format("/storage/{}", all.size());
    StorageTraffic& traffic = all.emplace_back();
    traffic.name = given.name;
    traffic.direction = given.direction;
    traffic.nodes = lists.read(where + "/nodes", given.nodes);
    traffic.servers = lists.read(where + "/servers", given.servers);
    traffic.bytes = given.bytes;
    traffic.every = given.every;
    traffic.bandwidth = given.bandwidth;
    traffic.start = given.start;
    if (given.nodes.empty()) problems.add(where + "/nodes", "no nodes", "at least one");
    lists.take(where + "/servers", traffic.name, traffic.servers);
    lists.refuse_servers(where + "/nodes", traffic.nodes, traffic.servers);
  }
  return all;
}

}  // namespace

std::int64_t count_nodes(const ClusterSpec& cluster) {
  const std::int64_t most = cluster.most_accelerators().value_or(kMostNodes * domain_size(cluster));
  return std::clamp<std::int64_t>(most / domain_size(cluster), 1, kMostNodes);
}

JobSet load_job_set(const nlohmann::json& document, const std::string& file_or_dash) {
  const std::string source = argument_source(file_or_dash);
  const JobsSpec spec = read_jobs(document, source);
  ProblemList problems(source);
  JobSet jobs;
  jobs.steps = spec.steps;
  jobs.training = load_training(spec, file_or_dash, problems);
  problems.throw_if_any();
  NodeLists lists(jobs.cluster(), problems);
  read_training_nodes(spec, lists, problems, jobs.training);
  jobs.storage = read_storage(spec, lists, problems);
  problems.throw_if_any();
  place_jobs(jobs, source);
  return jobs;
}

}  // namespace shardwright::sim
