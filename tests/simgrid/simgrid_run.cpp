#include "tests/simgrid/simgrid_run.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <memory>
#include <set>
#include <simgrid/s4u.hpp>

#include "core/base/error.hpp"

namespace shardwright::sim::fixtures {
namespace {

namespace s4u = simgrid::s4u;

// CM02 without its corrections for TCP: plain max-min sharing, latency paid once.
std::vector<std::string> configuration(SimGridUpdate update) {
  return {"simgrid", "--log=root.thresh:critical", "--cfg=network/model:CM02",
          update == SimGridUpdate::Full ? "--cfg=network/optim:Full" : "--cfg=network/optim:Lazy",
          "--cfg=network/TCP-gamma:0", "--cfg=network/bandwidth-factor:1",
          "--cfg=network/latency-factor:1", "--cfg=network/weight-S:0",
          "--cfg=network/crosstraffic:0",
          // The defaults stop at 1e-5, which is too coarse to compare at 1e-6.
          "--cfg=maxmin/precision:1e-9", "--cfg=surf/precision:1e-12"};
}

class Child {
 public:
  Child(const HostScenario& scenario, SimGridUpdate update) : scenario_(scenario) {
    auto words = configuration(update);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    int count = static_cast<int>(arguments.size());
    engine_ = std::make_unique<s4u::Engine>(&count, arguments.data());
    build_platform();
    build_flows();
  }

  SimGridRun run() {
    const std::clock_t begin = std::clock();
    engine_->run();
    SimGridRun run{{}, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC};
    for (const auto& flow : flows_)
      run.flows.push_back({Seconds(flow->get_start_time()), Seconds(flow->get_finish_time())});
    return run;
  }

 private:
  void build_platform() {
    auto* zone = s4u::create_full_zone("network");
    for (std::uint32_t i = 0; i < scenario_.hosts; ++i)
      hosts_.push_back(zone->create_host("h" + std::to_string(i), 1e9)->seal());
    for (const ScenarioLink& link : scenario_.flows.links()) {
      links_.push_back(zone->create_link(link.id, link.bandwidth.value())
                           ->set_latency(link.latency.value())
                           ->seal());
    }
    std::set<Endpoints> routed;
    for (FlowIndex flow = 0; flow < scenario_.endpoints.size(); ++flow) {
      const Endpoints pair = scenario_.endpoints[flow];
      if (!routed.insert(pair).second) continue;
      std::vector<s4u::LinkInRoute> route;
      for (const LinkIndex link : scenario_.flows.route(flow)) route.emplace_back(links_[link]);
      zone->add_route(hosts_[pair.first]->get_netpoint(), hosts_[pair.second]->get_netpoint(),
                      nullptr, nullptr, route, false);
    }
    zone->seal();
  }

  // Flows that follow others start by themselves as their successors; those at a time are started
  // by one actor that sleeps in between.
  void build_flows() {
    const auto count = static_cast<FlowIndex>(scenario_.flows.flow_count());
    for (FlowIndex flow = 0; flow < count; ++flow) {
      const auto [from, to] = scenario_.endpoints[flow];
      flows_.push_back(s4u::Comm::sendto_init(hosts_[from], hosts_[to]));
      flows_.back()->set_payload_size(
          static_cast<std::uint64_t>(scenario_.flows.bytes(flow).value()));
    }
    for (FlowIndex flow = 0; flow < count; ++flow) {
      for (const FlowIndex other : scenario_.flows.after(flow))
        flows_[other]->add_successor(flows_[flow]);
      if (scenario_.flows.after(flow).empty()) starts_.push_back(flow);
    }
    for (FlowIndex flow = 0; flow < count; ++flow) {
      if (!scenario_.flows.after(flow).empty()) flows_[flow]->vetoable_start();
    }
    std::stable_sort(starts_.begin(), starts_.end(), [&](FlowIndex a, FlowIndex b) {
      return scenario_.flows.start(a) < scenario_.flows.start(b);
    });
    s4u::Actor::create("starter", hosts_[0], [this] {
      for (const FlowIndex flow : starts_) {
        s4u::this_actor::sleep_until(scenario_.flows.start(flow).value());
        flows_[flow]->vetoable_start();
      }
    });
  }

  const HostScenario& scenario_;
  std::unique_ptr<s4u::Engine> engine_;
  std::vector<s4u::Host*> hosts_;
  std::vector<s4u::Link*> links_;
  std::vector<s4u::CommPtr> flows_;
  std::vector<FlowIndex> starts_;
};

void write_all(int file, const void* data, std::size_t size) {
  const auto* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = write(file, at, size);
    if (written <= 0) _exit(1);
    at += written;
    size -= static_cast<std::size_t>(written);
  }
}

bool read_all(int file, void* data, std::size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t count = read(file, at, size);
    if (count <= 0) return false;
    at += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

[[noreturn]] void answer_from_child(int file, const HostScenario& scenario, SimGridUpdate update) {
  auto* child = new Child(scenario, update);  // never taken down: the process ends here
  const SimGridRun run = child->run();
  write_all(file, &run.cpu_s, sizeof run.cpu_s);
  write_all(file, run.flows.data(), run.flows.size() * sizeof(FlowTimes));
  _exit(0);
}

}  // namespace

SimGridRun run_in_simgrid(const HostScenario& scenario, SimGridUpdate update) {
  std::array<int, 2> pipe_ends{};
  if (pipe(pipe_ends.data()) != 0) throw RuntimeFailure("no pipe to a SimGrid process");
  std::fflush(nullptr);  // else the child writes what is buffered here once more
  const pid_t process = fork();
  if (process < 0) throw RuntimeFailure("no SimGrid process");
  if (process == 0) answer_from_child(pipe_ends[1], scenario, update);
  close(pipe_ends[1]);
  SimGridRun run;
  run.flows.resize(scenario.flows.flow_count());
  const bool complete =
      read_all(pipe_ends[0], &run.cpu_s, sizeof run.cpu_s) &&
      read_all(pipe_ends[0], run.flows.data(), run.flows.size() * sizeof(FlowTimes));
  close(pipe_ends[0]);
  waitpid(process, nullptr, 0);
  if (!complete) throw RuntimeFailure("SimGrid failed on scenario " + scenario.name);
  return run;
}

}  // namespace shardwright::sim::fixtures
