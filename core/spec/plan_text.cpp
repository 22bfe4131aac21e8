#include "core/spec/plan_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/quantity_text.hpp"
#include "core/spec/pools.hpp"

namespace shardwright {

std::string layers_text(const std::vector<std::int64_t>& counts) {
  std::string text;
  for (auto first = counts.begin(); first != counts.end();) {
    const auto next =
        std::find_if(first, counts.end(), [first](std::int64_t count) { return count != *first; });
    text += fmt::format("{}{}×{}", text.empty() ? "" : " ", *first, next - first);
    first = next;
  }
  return text;
}

std::string layer_split_text(const Plan& plan) {
  if (plan.pp == 1) return "";
  if (!plan.stage_layers.empty()) return layers_text(plan.stage_layers);
  if (plan.embedding_counts_as_layer && plan.head_counts_as_layer) return "ends as layers";
  if (plan.embedding_counts_as_layer) return "embedding as layer";
  return plan.head_counts_as_layer ? "head as layer" : "";
}

std::string part_pools_text(const PoolReplicas& part, const char* between) {
  std::vector<std::string> pools = part.stage_pools;
  if (pools.empty()) return part.pool;
  pools.erase(std::unique(pools.begin(), pools.end()), pools.end());
  return fmt::format("{}", fmt::join(pools, between));
}

std::string pools_text(const Plan& plan) {
  const std::vector<std::string> pools = pools_of(plan);
  std::vector<std::string> texts;
  for (const PoolReplicas& part : plan.replica_pools)
    texts.push_back(
        fmt::format("{} {}×{}", part_pools_text(part, "+"), part.replicas, part.microbatches) +
        (part.experts > 0 ? fmt::format(" ({} experts)", part.experts) : ""));
  if (!texts.empty()) return fmt::format("{}", fmt::join(texts, " "));
  if (pools.size() == 1) return pools.front();
  for (const std::string& pool : pools)
    texts.push_back(fmt::format(
        "{}×{}", pool, std::count(plan.stage_pools.begin(), plan.stage_pools.end(), pool)));
  return fmt::format("{}", fmt::join(texts, " "));
}

std::string stage_name(const Plan& plan, std::int64_t stage) {
  std::string name = fmt::format("stage {}", stage % plan.pp);
  if (!plan.replica_pools.empty())
    name += " on " + pool_name_of_stage(plan, static_cast<std::size_t>(stage));
  if (!splits_replicas(plan)) return name;
  const auto part = static_cast<std::size_t>(stage / plan.pp);
  const std::int64_t first = first_replica(plan, part), last = first_replica(plan, part + 1) - 1;
  return name + (first == last ? fmt::format(", replica {}", first)
                               : fmt::format(", replicas {} to {}", first, last));
}

std::string recompute_text(const Plan& plan) {
  std::string text = name_of(plan.recompute);
  if (plan.recompute_layers > 0) text += ", " + format_plural(plan.recompute_layers, "layer");
  if (!plan.stage_recompute_layers.empty())
    text += fmt::format(", {} layers by stage", layers_text(plan.stage_recompute_layers));
  if (plan.recompute_interval > 1) text += fmt::format(", 1 of {} layers", plan.recompute_interval);
  if (plan.recompute_group > 1) text += fmt::format(", by {} layers", plan.recompute_group);
  if (!plan.recompute_modules.empty()) text += " " + names_of(plan.recompute_modules, "+");
  return text;
}

std::string offloaded_activations_text(const Plan& plan) {
  if (!plan.offload_activations) return {};
  std::string text = "activations";
  if (!plan.offload_modules.empty()) text = "inputs of " + names_of(plan.offload_modules, "+");
  if (plan.offload_ratio < 1.0)
    text = fmt::format("{:.3g} % of {}", plan.offload_ratio * 100.0, text);
  if (plan.offload_layers > 0) text += fmt::format(" of {} layers", plan.offload_layers);
  return text;
}

std::string lora_text(const Plan& plan) {
  if (!plan.lora) return {};
  const Lora& lora = *plan.lora;
  std::string text = fmt::format("LoRA of rank {}", lora.rank);
  if (!lora.targets.empty()) text += " on " + names_of(lora.targets);
  if (lora.base == FrozenFormat::Nf4) text += " over NF4 weights";
  return text;
}

namespace {

std::string servers_text(const ReplicaAgreement& replicas) {
  const std::string count = replicas.servers == 0 ? "one for each node of the workers"
                                                  : fmt::format("{}", replicas.servers);
  const char* where = replicas.server_place == ServerPlace::Dedicated ? "dedicated " : "";
  std::string updates = name_of(replicas.server_updates);
  if (replicas.server_updates == ServerUpdates::BoundedStaleness)
    updates = fmt::format("at most {} steps stale", replicas.staleness);
  return fmt::format("{}parameter servers ({}), {}", where, count, updates);
}

}  // namespace

std::string replicas_text(const Plan& plan) {
  const ReplicaAgreement& replicas = plan.replicas;
  std::string form = name_of(replicas.compression);
  if (replicas.compression == ReplicaCompression::TopK)
    form += fmt::format(" of {:.3g} %", replicas.topk_ratio * 100.0);
  if (replicas.compression == ReplicaCompression::PowerSgd)
    form += fmt::format(" of rank {}", replicas.powersgd_rank);
  const bool plain = replicas.compression == ReplicaCompression::None;
  if (replicas.has_servers()) return servers_text(replicas);
  if (!replicas.local()) return plain ? "" : "gradients in " + form;
  std::string text = fmt::format("local steps of {}", replicas.inner_steps);
  if (replicas.outer == OuterOptimizer::Nesterov) text += " with Nesterov";
  if (replicas.fragments > 1)
    text +=
        fmt::format(" in {} {} fragments", replicas.fragments, name_of(replicas.fragment_order));
  if (replicas.overlap_steps > 0)
    text += " beside " + format_plural(replicas.overlap_steps, "step");
  return plain ? text : text + ", " + form;
}

std::string rank_order_text(const std::vector<Axis>& order) {
  std::vector<const char*> names;
  for (const Axis axis : order) names.push_back(name_of(axis));
  return fmt::format("{}", fmt::join(names, "-"));
}

}  // namespace shardwright
