#include "cli/output/server_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/base/quantity_text.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;

const char* limit_text(sim::ServerLimit limit) {
  switch (limit) {
    case sim::ServerLimit::ServerNics:
      return "the network cards of the servers";
    case sim::ServerLimit::WorkerNics:
      return "the network cards of the workers";
    case sim::ServerLimit::ServerMemory:
      return "the memory bandwidth of the servers";
    case sim::ServerLimit::InsideNodes:
      return "the links inside of nodes";
  }
  return "";
}

std::string limits_text(const sim::ServerUse& use) {
  if (use.push.limit == use.pull.limit)
    return fmt::format("both are limited by {}", limit_text(use.push.limit));
  return fmt::format("pushes are limited by {}, pulls by {}", limit_text(use.push.limit),
                     limit_text(use.pull.limit));
}

std::string nodes_text(const sim::ServerUse& use) {
  const std::string of =
      use.host_memory > Bytes() ? fmt::format(" of {} GB", format_gigabytes(use.host_memory)) : "";
  return fmt::format("{} on {} of the {}, with {} GB{} on each", use.nodes.processes,
                     use.nodes.servers,
                     use.nodes.dedicated ? "nodes beside the workers'" : "workers' nodes",
                     format_gigabytes(use.memory), of);
}

std::int64_t most_stale(const sim::ServedSteps& served) {
  return served.staleness.empty() ? 0 : served.staleness.back();
}

std::string staleness_text(const sim::ServedSteps& served) {
  return fmt::format(
      "{} updates of other replicas on average, P95 {}, at most {}; steps ahead of the slowest "
      "replica: at most {}",
      format_number(served.mean_staleness()), served.staleness_quantile(0.95), most_stale(served),
      served.most_ahead);
}

}  // namespace

void add_servers(Page& page, const sim::ServerUse& use,
                 const std::optional<sim::ServedSteps>& served) {
  std::vector<std::pair<std::string, std::string>> facts = {
      {"parameter servers", nodes_text(use)},
      {"push, update, pull",
       fmt::format("{}, {}, {}; {}", format_time(use.push.time), format_time(use.update),
                   format_time(use.pull.time), limits_text(use))}};
  if (served) facts.emplace_back("staleness", staleness_text(*served));
  page.facts(facts);
}

ordered_json servers_json(const sim::ServerUse& use,
                          const std::optional<sim::ServedSteps>& served) {
  ordered_json document = {
      {"processes", use.nodes.processes},      {"nodes", use.nodes.servers},
      {"dedicated", use.nodes.dedicated},      {"memory_bytes", use.memory.value()},
      {"push_s", use.push.time.value()},       {"push_limit", name_of(use.push.limit)},
      {"update_s", use.update.value()},        {"pull_s", use.pull.time.value()},
      {"pull_limit", name_of(use.pull.limit)}, {"busy_s", use.busy.value()}};
  if (!served) return document;
  document["staleness"] = {{"mean_updates", served->mean_staleness()},
                           {"p50_updates", served->staleness_quantile(0.5)},
                           {"p95_updates", served->staleness_quantile(0.95)},
                           {"most_updates", most_stale(*served)},
                           {"most_steps_ahead", served->most_ahead}};
  return document;
}

}  // namespace shardwright::cli
