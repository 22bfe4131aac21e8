#include "gui/models/scenario_tips.hpp"

#include <algorithm>
#include <string_view>

#include "core/base/error.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/profile_library.hpp"
#include "gui/models/chosen_request.hpp"
#include "gui/models/text.hpp"
#include "planner/wording.hpp"

namespace shardwright::gui {
namespace {

// Writes a line of a summary: a figure, its value and its source.
QString fact(const QString& what, const QString& value, const Sources& sources,
             const std::string& pointer) {
  const auto found = sources.find(pointer);
  QString line = u"<tr><td>%1&nbsp;</td><td><b>%2</b></td><td>&nbsp;<i>%3</i></td></tr>"_s;
  QString source;
  if (found != sources.end()) {
    source = u"%1: %2"_s.arg(to_qstring(name_of(found->second.confidence)),
                             to_qstring(found->second.source).toHtmlEscaped());
  }
  return line.arg(what, value.toHtmlEscaped(), source);
}

// Keeps a number and its unit in one line.
QString unbroken(QString text) {
  constexpr char16_t kNoBreakSpace = u'\u00a0';
  // U+2060 is the word joiner.
  return text.replace(u' ', QChar(kNoBreakSpace)).replace(u'/', u"/\u2060"_s);
}

QString meaning_of(Field field) {
  return tip_of(field).toHtmlEscaped().replace(u'\n', u"<br>"_s);
}

QString table_of(const QString& facts) {
  return facts.isEmpty() ? QString() : u"<hr><table>%1</table>"_s.arg(facts);
}

template <class Load>
auto loaded(const Load& load) -> std::optional<decltype(load())> {
  try {
    return load();
  } catch (const std::exception&) {
    return std::nullopt;  // The search reports the problem with its field.
  }
}

QString memory_fact(const QString& what, const AcceleratorSpec& gpu) {
  return fact(what, bytes_text(gpu.memory), gpu.sources, "/memory/capacity_bytes");
}

QString memory_bandwidth_fact(const QString& what, const AcceleratorSpec& gpu) {
  return fact(what, bandwidth_text(gpu.memory_bandwidth), gpu.sources,
              "/memory/bandwidth_bytes_per_s");
}

QString scale_up_fact(const QString& what, const NodeSpec& node) {
  return fact(what, bandwidth_text(node.scale_up.bandwidth), node.sources,
              "/scale_up/bandwidth_bytes_per_s");
}

QString host_link_fact(const QString& what, const NodeSpec& node) {
  return fact(what, bandwidth_text(node.host.accelerator_link), node.sources,
              "/host/accelerator_link_bytes_per_s");
}

QString accelerator_facts(const AcceleratorSpec& gpu) {
  return fact(u"bf16 peak"_s, flop_rate_text(gpu.matrix.bf16), gpu.sources,
              "/matrix/bf16_flop_per_s") +
         memory_fact(u"memory"_s, gpu) + memory_bandwidth_fact(u"memory bandwidth"_s, gpu);
}

QString link_facts(const NodeSpec& node) {
  return scale_up_fact(to_qstring(node.scale_up.name), node) +
         fact(u"NICs of a node"_s,
              u"%1 × %2"_s.arg(node.nic.per_node).arg(bandwidth_text(node.nic.bandwidth)),
              node.sources, "/nic/bandwidth_bytes_per_s");
}

QString node_facts(const NodeSpec& node) {
  return link_facts(node) + host_link_fact(u"host link"_s, node);
}

QString fabric_facts(const FabricSpec& fabric) {
  return fact(u"kind"_s, to_qstring(name_of(fabric.kind)), {}, "") +
         fact(u"latency below one leaf"_s, time_text(fabric.base_latency), fabric.sources,
              "/base_latency_s");
}

QString stack_facts(const StackSpec& stack) {
  return fact(u"a kernel launch"_s, time_text(stack.host.launch_time), stack.sources,
              "/host/launch_s") +
         fact(u"a module's code"_s, time_text(stack.host.module_launch_time), stack.sources,
              "/host/module_s");
}

QString precision_facts(const ScenarioChoice& choice, const AcceleratorSpec& gpu) {
  for (const Precision precision : kPrecisions) {
    if (choice.precision != name_of(precision)) continue;
    const FlopPerSecond peak = gpu.matrix.of(precision);
    const QString value = peak.value() > 0.0 ? flop_rate_text(peak) : u"none"_s;
    return fact(to_qstring(gpu.name), value, gpu.sources,
                "/matrix/" + choice.precision + "_flop_per_s");
  }
  return {};
}

QString gpu_facts(const ClusterSpec& cluster) {
  const auto most = cluster.most_accelerators();
  return fact(u"in a node"_s, count_text(cluster.accelerators_per_node()), cluster.node.sources,
              "/accelerators") +
         fact(u"in the cluster, at most"_s,
              most ? count_text(*most) : u"as many as are asked for"_s, cluster.sources, "/nodes");
}

// The facts of each pool below its name; of a cluster of one pool they stand alone.
template <class Facts>
QString facts_by_pool(const ClusterSpec& cluster, const Facts& facts_of) {
  if (cluster.pools.empty()) return facts_of(cluster);
  QString text;
  for (const std::string& name : names_of_pools(cluster)) {
    const QString facts = facts_of(*pool_cluster(cluster, name));
    if (facts.isEmpty()) return {};
    text +=
        u"<tr><td colspan=3><b>%1</b></td></tr>"_s.arg(to_qstring(name).toHtmlEscaped()) + facts;
  }
  return text;
}

QString cluster_facts(Field field, const ScenarioChoice& choice, const ClusterSpec& cluster) {
  switch (field) {
    case Field::Accelerator:
      return accelerator_facts(cluster.accelerator);
    case Field::Node:
      return node_facts(cluster.node);
    case Field::Fabric:
      return fabric_facts(cluster.fabric);
    case Field::Cluster:
      return accelerator_facts(cluster.accelerator) + node_facts(cluster.node) +
             fabric_facts(cluster.fabric);
    case Field::Gpus:
      return gpu_facts(cluster);
    case Field::Precision:
      return precision_facts(choice, cluster.accelerator);
    case Field::MaxMemory:
      return memory_fact(u"the accelerator has"_s, cluster.accelerator);
    default:
      return {};
  }
}

// Returns the figures that 100 % of a what-if stand for.
QString resource_facts(planner::Resource resource, const ClusterSpec& cluster) {
  const AcceleratorSpec& gpu = cluster.accelerator;
  const NodeSpec& node = cluster.node;
  const QString is = u"100 % is"_s;
  switch (resource) {
    case planner::Resource::PeakFlops:
      return fact(is, flop_rate_text(gpu.matrix.bf16) + u" in bf16"_s, gpu.sources,
                  "/matrix/bf16_flop_per_s");
    case planner::Resource::MemoryBandwidth:
      return memory_bandwidth_fact(is, gpu);
    case planner::Resource::MemoryCapacity:
      return memory_fact(is, gpu);
    case planner::Resource::ScaleUpBandwidth:
      return scale_up_fact(is, node);
    case planner::Resource::ScaleOutBandwidth:
      return fact(is, bandwidth_text(node.nic.bandwidth), node.sources,
                  "/nic/bandwidth_bytes_per_s");
    case planner::Resource::Latency:
      return fact(is, time_text(node.scale_up.latency) + u" a hop within a node"_s, node.sources,
                  "/scale_up/latency_s") +
             fact({}, time_text(cluster.fabric.base_latency) + u" between nodes"_s,
                  cluster.fabric.sources, "/base_latency_s");
    case planner::Resource::HostSpeed:
      return fact(is, fixed_text(node.host.speed, 2) + u" of the host that launch times assume"_s,
                  node.sources, "/host/speed_ratio");
    case planner::Resource::HostLinkBandwidth:
      return host_link_fact(is, node);
    case planner::Resource::HostMemoryBandwidth:
      return fact(is, bandwidth_text(node.host.memory_bandwidth), node.sources,
                  "/host/memory_bandwidth_bytes_per_s");
    case planner::Resource::DiskBandwidth:
      return fact(is, bandwidth_text(node.host.nvme_read) + u" to read"_s, node.sources,
                  "/host/nvme_read_bytes_per_s") +
             fact({}, bandwidth_text(node.host.nvme_write) + u" to write"_s, node.sources,
                  "/host/nvme_write_bytes_per_s");
  }
  return {};
}

}  // namespace

ScenarioParts load_parts(const ScenarioChoice& choice) {
  ScenarioChoice as_it_is = choice;
  as_it_is.what_if = ScenarioChoice().what_if;
  ScenarioParts parts;
  parts.model = loaded([&] { return load_model(choice.model); });
  parts.cluster = loaded([&] { return load_cluster_of(as_it_is); });
  parts.stack =
      loaded([&] { return load_stack_on(parts.cluster.value_or(ClusterSpec{}), choice.stack); });
  return parts;
}

QString tip_of(Field field, const ScenarioChoice& choice, const ScenarioParts& parts) {
  const QString tip = meaning_of(field);
  QString facts;
  if (field == Field::Model && parts.model) return tip + u"<hr>"_s + model_summary(*parts.model);
  if (field == Field::SeqLen && parts.model)
    facts = fact(u"longest of the published model"_s, count_text(parts.model->max_seq_len),
                 {{"", {parts.model->source, Confidence::Datasheet}}}, "");
  if (field == Field::Stack && parts.stack) facts = stack_facts(*parts.stack);
  if (parts.cluster)
    facts += facts_by_pool(*parts.cluster, [&](const ClusterSpec& pool) {
      return cluster_facts(field, choice, pool);
    });
  return tip + table_of(facts);
}

QString tip_of(planner::Resource resource, const ScenarioParts& parts) {
  QString tip = meaning_of(Field::WhatIf);
  if (resource == planner::Resource::Latency)
    tip += u"<br>The latency itself is divided: 200 % is half of it."_s;
  if (!parts.cluster) return tip;
  return tip + table_of(facts_by_pool(*parts.cluster, [&](const ClusterSpec& pool) {
           return resource_facts(resource, pool);
         }));
}

namespace {

QString pool_summary(const ClusterSpec& cluster) {
  const NodeSpec& node = cluster.node;
  QString text = fact(u"accelerator"_s, to_qstring(cluster.accelerator.name), {}, "");
  text += accelerator_facts(cluster.accelerator);
  text += fact(u"node"_s,
               u"%1, %2 accelerators"_s.arg(to_qstring(node.name)).arg(node.accelerators), {}, "");
  text += link_facts(node);
  text += fact(
      u"fabric"_s,
      u"%1, %2"_s.arg(to_qstring(cluster.fabric.name), to_qstring(name_of(cluster.fabric.kind))),
      {}, "");
  return text;
}

QString pool_facts(const ClusterSpec& cluster) {
  QString facts = u"%1 × %2 (%3) a node, %4 at %5"_s.arg(cluster.accelerators_per_node())
                      .arg(to_qstring(cluster.accelerator.name),
                           unbroken(bytes_text(cluster.accelerator.memory)),
                           to_qstring(cluster.node.scale_up.name),
                           unbroken(bandwidth_text(cluster.node.scale_up.bandwidth)));
  const NicSpec& nic = cluster.node.nic;
  if (nic.per_node > 0)
    facts += u", %1 at %2"_s.arg(counted_text(nic.per_node, "NIC"),
                                 unbroken(bandwidth_text(nic.bandwidth)));
  return facts;
}

}  // namespace

TipSource simulated_on(const ClusterSpec& cluster) {
  EnumArray<Confidence, int> counts{};
  for (const Sources* part : {&cluster.accelerator.sources, &cluster.node.sources,
                              &cluster.fabric.sources, &cluster.sources}) {
    for (const auto& [place, figure] : *part) ++counts[figure.confidence];
  }
  QStringList kinds;
  for (const Confidence each : enumerators<Confidence>())
    if (counts[each] > 0) kinds.append(u"%1 %2"_s.arg(counts[each]).arg(to_qstring(name_of(each))));
  QString text = u"event simulation with the profile %1"_s.arg(to_qstring(cluster.name));
  if (!kinds.isEmpty()) text += u" (its figures: %1)"_s.arg(kinds.join(u", "_s));
  return TipSource(text);
}

TipSource simulated_step() {
  return TipSource(u"event simulation of the plan's step"_s);
}

TipSource source_of(const PlanSet& set) {
  const TipSource simulated = simulated_on(set.request.cluster);
  if (set.origin.isEmpty() || set.origin == u"search"_s) return simulated;
  return TipSource(u"%1; the plans come from %2"_s.arg(simulated.text, set.origin));
}

const char* accelerator_word(const ClusterSpec& cluster) {
  return planner::accelerator_word(cluster);
}

const char* accelerator_word(const ScenarioChoice& choice) {
  try {
    return accelerator_word(load_cluster_of(choice));
  } catch (const InputError&) {
    return "GPU";  // The search reports the problem with its field.
  }
}

const char* accelerator_word(const PlanSetPointer& set) {
  return set ? accelerator_word(set->request.cluster) : "GPU";
}

QString with_accelerator(const QString& text, const char* word) {
  return to_qstring(planner::with_accelerator(text.toStdString(), word));
}

QString cluster_summary(const ClusterSpec& cluster) {
  return u"<b>%1</b><table>%2</table>"_s.arg(to_qstring(cluster.name).toHtmlEscaped(),
                                             facts_by_pool(cluster, pool_summary));
}

QString model_summary(const ModelSpec& model) {
  QString text =
      u"<b>%1</b>: %7 parameters, %2 layers, hidden %3, %4 heads (%5 key/value), vocabulary %6"_s
          .arg(to_qstring(model.name).toHtmlEscaped(), count_text(model.layers),
               count_text(model.hidden), count_text(model.attention.heads),
               count_text(model.attention.kv_heads), count_text(model.vocab),
               to_qstring(format_parameters(count_parameters(model).total)));
  if (model.moe) {
    text += u", %1 experts of which %2 serve a token"_s.arg(count_text(model.moe->experts),
                                                            count_text(model.moe->top_k));
  }
  if (!model.source.empty())
    text += u"<br><i>%1</i>"_s.arg(to_qstring(model.source).toHtmlEscaped());
  return text;
}

QString machine_facts(const ClusterSpec& cluster) {
  if (cluster.pools.empty()) return pool_facts(cluster);
  QStringList lines;
  for (const std::string& name : names_of_pools(cluster))
    lines.append(u"%1: %2"_s.arg(to_qstring(name).toHtmlEscaped(),
                                 pool_facts(*pool_cluster(cluster, name))));
  return lines.join(u"<br>"_s);
}

}  // namespace shardwright::gui
