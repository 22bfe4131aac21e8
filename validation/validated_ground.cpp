#include "validation/validated_ground.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/data_directory.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/plan_text.hpp"

namespace shardwright::validation {
namespace {

// The factors beyond the largest published run of a kind to which it is trusted.
constexpr std::int64_t kTimesAccelerators = 4, kTimesSequence = 2;

struct RunTrait {
  const char* name;
  bool (*of)(const Plan& plan);
};

// The first ones are kinds of parallelism.
constexpr std::size_t kParallelisms = 5;
constexpr std::array<RunTrait, 11> kTraits = {{
    {"fsdp", [](const Plan& plan) { return plan.zero_stage == 3; }},
    {"tp", [](const Plan& plan) { return plan.tp > 1; }},
    {"pp", [](const Plan& plan) { return plan.pp > 1; }},
    {"cp", [](const Plan& plan) { return plan.cp > 1; }},
    {"ep", [](const Plan& plan) { return plan.ep > 1; }},
    {"zero-bubble",
     [](const Plan& plan) {
       using enum ScheduleKind;
       return plan.pp > 1 &&
              (plan.schedule == ZbH1 || plan.schedule == ZbH2 || plan.schedule == ZbV);
     }},
    {"dualpipe",
     [](const Plan& plan) { return plan.pp > 1 && plan.schedule == ScheduleKind::DualPipe; }},
    {"narrow-states", [](const Plan& plan) { return is_narrow(plan.optimizer_states); }},
    {"optimizer-offload", [](const Plan& plan) { return plan.offloads_optimizer(); }},
    {"activation-offload", [](const Plan& plan) { return plan.offload_activations; }},
    {"lora", [](const Plan& plan) { return plan.lora.has_value(); }},
}};

unsigned kind_bits(const Plan& plan) {
  unsigned bits = 0;
  for (std::size_t i = 0; i < kTraits.size(); ++i) bits |= unsigned{kTraits[i].of(plan)} << i;
  return bits;
}

std::string kind_text(unsigned bits) {
  std::string text;
  for (std::size_t i = 0; i < kTraits.size(); ++i) {
    if ((bits >> i & 1U) != 0) text += (text.empty() ? "" : "+") + std::string(kTraits[i].name);
  }
  return text.empty() ? "dp" : text;
}

constexpr unsigned kKinds = 1U << kTraits.size();

// The kind that kind_text() writes so, or kKinds.
unsigned bits_of(const std::string& kind) {
  unsigned bits = 0;
  while (bits < kKinds && kind_text(bits) != kind) ++bits;
  return bits;
}

// The runs of one kind that one source published.
struct PublishedRuns {
  std::string source, family;
  Architecture architecture = Architecture::Other;
  unsigned kind = 0;
  bool experts = false, low_precision = false;
  std::int64_t runs = 0, most_accelerators = 0, longest_sequence = 0;
};

std::vector<PublishedRuns> read_runs() {
  const auto file = data_directory() / "measurements" / "validated_ground.json";
  const nlohmann::json document = read_json_file(file);
  ProblemList problems(file.string());
  std::vector<PublishedRuns> all;
  ObjectReader reader(document, "", problems);
  for (ObjectReader& object : reader.objects("kinds")) {
    PublishedRuns runs;
    runs.source = object.text("source");
    runs.architecture = object.choice<Architecture>("architecture");
    runs.family = object.name("family");
    runs.experts = object.boolean("experts");
    runs.low_precision = object.boolean("low_precision");
    const std::string kind = object.name("kind");
    runs.kind = bits_of(kind);
    if (runs.kind == kKinds) object.problem("kind", '"' + kind + '"', "traits as in tp+pp, or dp");
    runs.runs = object.integer("runs");
    runs.most_accelerators = object.integer("most_accelerators");
    runs.longest_sequence = object.integer("longest_sequence");
    object.refuse_unknown_keys();
    all.push_back(std::move(runs));
  }
  problems.throw_if_any();
  return all;
}

const std::vector<PublishedRuns>& published_runs() {
  static const std::vector<PublishedRuns> kRuns = read_runs();
  return kRuns;
}

}  // namespace

std::string parallelism_text(const Plan& plan) {
  return kind_text(kind_bits(plan) & ((1U << kParallelisms) - 1));
}

std::string run_kind_text(const Plan& plan) {
  return kind_text(kind_bits(plan));
}

ValidatedGround::ValidatedGround(const Scenario& scenario, const std::string& except) {
  const Architecture architecture = scenario.cluster.accelerator.architecture;
  const std::string& family = scenario.stack.family;
  const bool experts = scenario.model.moe.has_value();
  const bool low_precision = casts_operands(scenario.plan.precision);
  what_ = fmt::format("{} models in {}-bit formats on {} accelerators with {} software",
                      experts ? "sparse" : "dense", low_precision ? "8" : "16",
                      name_of(architecture), scenario.stack.generic ? "unknown" : family);
  if (scenario.stack.generic) return;
  for (const PublishedRuns& runs : published_runs()) {
    const bool alike = runs.architecture == architecture && runs.family == family &&
                       runs.experts == experts && runs.low_precision == low_precision;
    if (!alike || runs.source == except) continue;
    Reach& reach = reach_[runs.kind];
    reach.runs += runs.runs;
    reach.most_accelerators = std::max(reach.most_accelerators, runs.most_accelerators);
    reach.longest_sequence = std::max(reach.longest_sequence, runs.longest_sequence);
  }
}

const ValidatedGround::Reach* ValidatedGround::reach_of(const Plan& plan) const {
  const auto found = reach_.find(kind_bits(plan));
  return found == reach_.end() ? nullptr : &found->second;
}

bool ValidatedGround::covers(const Plan& plan) const {
  const Reach* reach = reach_of(plan);
  return plan.replicas == ReplicaAgreement() && reach != nullptr &&
         plan.world_size() <= kTimesAccelerators * reach->most_accelerators &&
         plan.seq_len <= kTimesSequence * reach->longest_sequence;
}

std::string ValidatedGround::gap(const Plan& plan) const {
  if (covers(plan)) return "";
  if (reach_.empty()) return fmt::format("there is no published run of {}", what_);
  if (const std::string agree = replicas_text(plan); !agree.empty())
    return fmt::format("no published step of {} was measured with {}", what_, agree);
  const Reach* reach = reach_of(plan);
  const std::string kind = run_kind_text(plan);
  if (reach == nullptr) return fmt::format("no published run of {} used {}", what_, kind);
  if (plan.world_size() > kTimesAccelerators * reach->most_accelerators) {
    return fmt::format("the largest published run of {} that used {} had {} accelerators", what_,
                       kind, format_count(reach->most_accelerators));
  }
  return fmt::format("the longest sequences in published runs of {} that used {} had {} tokens",
                     what_, kind, format_count(reach->longest_sequence));
}

std::map<std::string, ValidatedGround::Reach> ValidatedGround::kinds() const {
  std::map<std::string, Reach> named;
  for (const auto& [bits, reach] : reach_) named.emplace(kind_text(bits), reach);
  return named;
}

std::int64_t ValidatedGround::runs(const Plan& plan) const {
  const Reach* reach = reach_of(plan);
  return reach == nullptr ? 0 : reach->runs;
}

}  // namespace shardwright::validation
