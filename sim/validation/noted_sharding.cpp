#include "sim/validation/noted_sharding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <regex>
#include <set>
#include <vector>

#include "core/spec/plan_check.hpp"
#include "sim/validation/negation.hpp"

namespace shardwright::sim {
namespace {

using std::regex_constants::icase;

constexpr std::int64_t kUsualNode = 8;  // accelerators

std::string source_text(const TrainingRow& row) {
  return row.stack + "; " + row.notes;
}

bool says_hybrid_shard(const std::string& text) {
  return affirms_any(text, {"hsdp", "hybrid shard", "hybrid_shard", "hybrid-shard", "_hybrid_shard",
                            "hybridshard", "hybrid fsdp", "hybrid sharded"});
}

// Nothing where no strategy, or several of different stages, stand in the text undenied.
std::optional<int> zero_stage_in(const std::string& text) {
  struct Strategy {
    std::regex name;
    int stage;
  };
  const auto named = [](const char* name) {
    return std::regex(std::string("(?:^|[^a-z_])") + name + "(?![a-z_])", icase);
  };
  static const std::vector<Strategy> kStrategies = {
      {named("full[_-]shard"), 3},       {named("hybrid[_-]shard"), 3},
      {named("shard[_-]grad[_-]op"), 2}, {named("_?hybrid[_-]shard[_-]zero2"), 2},
      {named("no[_-]shard"), 0},
  };
  static const std::regex kMesh = named("hsdp");  // with either of 2 and 3, which is its default
  std::set<int> stages;
  for (const Strategy& strategy : kStrategies)
    if (!affirmed_match(text, strategy.name).empty()) stages.insert(strategy.stage);
  if (stages.empty() && !affirmed_match(text, kMesh).empty()) stages.insert(3);
  return stages.size() == 1 ? std::optional(*stages.begin()) : std::nullopt;
}

// The number that ends the first match of the pattern.
std::optional<std::int64_t> ranks_in(const std::string& text, const std::regex& pattern) {
  const std::string match = affirmed_match(text, pattern);
  const auto place = match.find_last_not_of("0123456789");
  std::int64_t ranks = 0;
  if (match.empty()) return std::nullopt;
  std::from_chars(match.data() + place + 1, match.data() + match.size(), ranks);
  return ranks > 0 ? std::optional(ranks) : std::nullopt;
}

// Data-parallel ranks of a group, which the notes may tell by the number of groups.
std::optional<std::int64_t> group_in(const std::string& text, const Plan& plan) {
  static const std::string kIs = "(?: ?[=:] ?| of | )";
  static const std::string kRanks = R"((\d{1,6})(?![\w/%]|[.,]\d|[- ]?(?:nodes?|layers?|way)))";
  static const std::regex kGroup(
      R"(\b(?:(?:data[-_ ]parallel|dp|fsdp|hsdp)[-_ ]shard(?:ing)?(?:[-_ ](?:degree|size|group))?|shard(?:ing)?[-_ ](?:group|degree)(?:[-_ ]size)?|(?:fsdp|hsdp)[-_ ](?:group|size|degree)(?:[-_ ]size)?))" +
          kIs + kRanks,
      icase);
  static const std::regex kReplicas(
      R"(\b(?:data[-_ ]parallel|dp|fsdp|hsdp)[-_ ]replicat(?:e|ion)(?:[-_ ](?:degree|size))?)" +
          kIs + kRanks,
      icase);
  if (const auto ranks = ranks_in(text, kGroup)) return ranks;
  const auto replicas = ranks_in(text, kReplicas);
  const std::int64_t all = plan.dp * plan.cp;
  return replicas && all % *replicas == 0 ? std::optional(all / *replicas) : std::nullopt;
}

// InternEvo's "zero1=8", "zero1=dict(size=8)": the ranks that divide the optimizer's states, all of
// them if not positive; 1 divides none. Elsewhere 0 and 1 are switches.
std::optional<std::int64_t> zero1_size_in(const std::string& text) {
  static const std::regex kSize(
      R"(\bzero1(?:[-_. ]size)?(?: ?[=:] ?| of | )(?:dict ?\()?(?:size ?= ?)?-?\d{1,6}(?![\w/%]|[.,]\d))",
      icase);
  const std::string match = affirmed_match(text, kSize);
  if (match.empty()) return std::nullopt;
  const auto place = match.find_last_not_of("-0123456789");
  std::int64_t size = 0;
  std::from_chars(match.data() + place + 1, match.data() + match.size(), size);
  const bool is_size = size > 1 || affirms_any(text, {"internevo", "internlm"});
  return is_size ? std::optional(size) : std::nullopt;
}

bool can_shard_over_groups(const ModelSpec& model, const Plan& plan) {
  const std::vector<BrokenRule> broken = broken_rules(model, nullptr, plan);
  return std::none_of(broken.begin(), broken.end(),
                      [](const BrokenRule& each) { return each.rule == PlanRule::ShardGroup; });
}

void set_zero1_group(std::int64_t size, const ModelSpec& model, Plan& plan,
                     std::vector<std::string>& filled_in) {
  if (size <= 0 || (size == 1 && plan.zero_stage == 0)) return;
  Plan grouped = plan;
  grouped.shard_group = size;
  if (size > 1 && plan.zero_stage == 1 && can_shard_over_groups(model, grouped)) {
    plan.shard_group = size;
    filled_in.push_back(fmt::format("shard_group: {}, by the notes' zero1", size));
  } else {
    filled_in.push_back(fmt::format(
        "zero1 of {} in the notes does not agree with zero_stage or the degrees: not taken", size));
  }
}

// Parameters that each node holds a second time, and collectives of fewer bits.
void list_zero_plus_plus(const std::string& text, std::vector<std::string>& filled_in) {
  if (affirms_any(text, {"hpz", "zero_hpz", "zero-hpz"}))
    filled_in.emplace_back(
        "ZeRO++'s copy of the parameters on each node, by the notes: not simulated");
  if (affirms_any(text, {"qwz", "qgz", "zero_quantized", "quantized weights communication"}))
    filled_in.emplace_back("ZeRO++'s quantised collectives, by the notes: not simulated");
  if (affirms_any(text, {"zero++", "zeropp"}) &&
      !affirms_any(text, {"hpz", "zero_hpz", "qwz", "qgz"}))
    filled_in.emplace_back("ZeRO++, by the notes: simulated as ZeRO");
}

}  // namespace

void complete_sharding(TrainingRow& row, std::vector<std::string>& filled_in) {
  if (row.plan.zero_stage) return;
  auto stage = zero_stage_in(source_text(row));
  const auto zero1 = zero1_size_in(source_text(row));
  if (!stage && zero1) stage = *zero1 == 1 ? 0 : 1;
  if (!stage) return;
  row.plan.zero_stage = *stage;
  filled_in.push_back(fmt::format("zero_stage: {}, by the notes' words for sharding", *stage));
}

void set_shard_group(const TrainingRow& row, const ModelSpec& model, Plan& plan,
                     std::vector<std::string>& filled_in) {
  const std::string text = source_text(row);
  list_zero_plus_plus(text, filled_in);
  if (const auto size = zero1_size_in(text)) return set_zero1_group(*size, model, plan, filled_in);
  if (plan.zero_stage == 0 || !says_hybrid_shard(text)) return;
  const auto stated = group_in(text, plan);
  const std::int64_t node = row.cluster.gpus_per_node.value_or(kUsualNode) / plan.tp;
  plan.shard_group = stated.value_or(std::clamp<std::int64_t>(node, 1, plan.dp * plan.cp));
  filled_in.push_back(fmt::format("shard_group: {}, {}", plan.shard_group,
                                  stated ? "by the notes" : "the ranks of a node, by the notes"));
}

}  // namespace shardwright::sim
