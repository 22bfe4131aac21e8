#include "sim/validation/row_degrees.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <optional>

#include "sim/validation/row_words.hpp"
#include "sim/validation/stack_habits.hpp"

namespace shardwright::sim {
namespace {

using Degree = std::optional<std::int64_t>;

// What a row says of its ranks, and what follows from it.
struct Degrees {
  Degree dp, tp, pp, cp, ep;
};

Degrees degrees_of(const TrainingRow& row) {
  return {row.plan.dp, row.plan.tp, row.plan.pp, row.plan.cp, row.plan.ep};
}

std::int64_t value_or_one(const Degree& degree, const char* key,
                          std::vector<std::string>& filled_in) {
  if (!degree) filled_in.push_back(fmt::format("{}: 1", key));
  return degree.value_or(1);
}

// The accelerators over those of the degrees that are stated, the replicas among them; 0 where
// these do not divide them.
std::int64_t left_over(const Degrees& degrees, std::int64_t accelerators) {
  double product = 1.0;
  for (const Degree& degree : {degrees.dp, degrees.tp, degrees.pp, degrees.cp})
    product *= static_cast<double>(degree.value_or(1));
  if (!degrees.dp || product > static_cast<double>(accelerators)) return 0;
  const auto ranks = static_cast<std::int64_t>(product);
  return accelerators % ranks == 0 ? accelerators / ranks : 0;
}

void follow(Degree& degree, const char* key, const Degrees& degrees, std::int64_t accelerators,
            std::vector<std::string>& filled_in) {
  const std::int64_t rest = left_over(degrees, accelerators);
  if (degree || rest == 0) return;
  degree = rest;
  filled_in.push_back(fmt::format("{}: {}, from the other degrees", key, rest));
}

// Expert parallelism lies inside of the replicas here; some sources count it beside them. What is
// not said of tensor and pipeline parallelism is 1 where the stack has it so.
void count_experts_in(const TrainingRow& row, const ModelSpec& model, const StackSpec& stack,
                      Degrees& degrees, std::vector<std::string>& filled_in) {
  const std::int64_t rest = left_over(degrees, row.cluster.gpus);
  const bool habit = shards_by_habit(row, stack);
  const bool cut =
      (degrees.tp || habit || leaves_layers_whole(model, stack)) && (degrees.pp || habit);
  if (!model.moe || !cut || rest <= 1 || degrees.ep != rest) return;
  filled_in.push_back(
      fmt::format("dp: {}, as its {} leave out ep", *degrees.dp * rest, *degrees.dp));
  *degrees.dp *= rest;
}

// PyTorch's sources often count the ranks over which FSDP shards, those of context parallelism
// among them. Degrees that take all accelerators without it leave no other reading.
void count_context_out(const TrainingRow& row, Degrees& degrees,
                       std::vector<std::string>& filled_in) {
  if (!degrees.dp || degrees.cp.value_or(1) == 1) return;
  const std::int64_t dp = *degrees.dp, cp = *degrees.cp;
  Degrees without = degrees;
  without.cp.reset();
  if (left_over(without, row.cluster.gpus) != 1 || dp % cp != 0) return;
  degrees.dp = dp / cp;
  filled_in.push_back(fmt::format("dp: {}, as its {} count cp in", dp / cp, dp));
}

// Tensor and pipeline degrees. One that the source leaves open follows from the others; both are 1
// where the stack shards by habit or the replicas take all accelerators.
bool tell_model_degrees(const TrainingRow& row, const ModelSpec& model, const StackSpec& stack,
                        Degrees& degrees, std::vector<std::string>& filled_in) {
  const std::int64_t accelerators = row.cluster.gpus;
  if (!degrees.tp && leaves_layers_whole(model, stack)) {
    degrees.tp = 1;
    filled_in.emplace_back("tp: 1, as the stack cuts such models");
  }
  if (degrees.tp && degrees.pp) return true;
  if (degrees.tp || degrees.pp) {
    follow(degrees.tp, "tp", degrees, accelerators, filled_in);
    follow(degrees.pp, "pp", degrees, accelerators, filled_in);
  }
  const bool all_replicas = left_over(degrees, accelerators) == 1;
  if (!shards_by_habit(row, stack) && !all_replicas && (!degrees.tp || !degrees.pp)) return false;
  degrees.tp = value_or_one(degrees.tp, "tp", filled_in);
  degrees.pp = value_or_one(degrees.pp, "pp", filled_in);
  return true;
}

// Chunks of a stage: those that the schedule has by its construction, or the source's.
void set_chunks(const TrainingRow& row, Plan& plan, std::vector<std::string>& filled_in) {
  const Degree& stated = row.plan.virtual_pp;
  const std::int64_t said = stated.value_or(1);
  plan.vpp = plan.pp == 1 ? 1 : said;
  if (plan.vpp != said)
    filled_in.push_back(fmt::format("virtual_pp: 1 for {}, as there is no pipeline", said));
  if (plan.pp == 1) return;
  const auto schedule = schedule_in(row.plan.schedule, plan.vpp);
  const bool two = schedule == ScheduleKind::ZbV;
  const bool one = schedule == ScheduleKind::DualPipe || schedule == ScheduleKind::ZbH1 ||
                   schedule == ScheduleKind::ZbH2;
  if (!two && !one) return;
  plan.vpp = two ? 2 : 1;
  if (plan.vpp != said || (two && !stated))
    filled_in.push_back(fmt::format("virtual_pp: {}, as {} has it", plan.vpp, name_of(*schedule)));
}

}  // namespace

bool tells_degrees(const TrainingRow& row, const ModelSpec& model, const StackSpec& stack) {
  std::vector<std::string> filled_in;
  Degrees degrees = degrees_of(row);
  count_context_out(row, degrees, filled_in);
  return tell_model_degrees(row, model, stack, degrees, filled_in);
}

bool set_degrees(const TrainingRow& row, const ModelSpec& model, const StackSpec& stack, Plan& plan,
                 std::vector<std::string>& filled_in, std::string& reason) {
  Degrees degrees = degrees_of(row);
  count_context_out(row, degrees, filled_in);
  count_experts_in(row, model, stack, degrees, filled_in);
  if (degrees.tp && degrees.pp && has_context_parallelism(row, stack))
    follow(degrees.cp, "cp", degrees, row.cluster.gpus, filled_in);
  if (!tell_model_degrees(row, model, stack, degrees, filled_in)) {
    reason = "the source does not say the tensor and pipeline degrees";
    return false;
  }
  plan.cp = value_or_one(degrees.cp, "cp", filled_in);
  plan.tp = *degrees.tp;
  plan.pp = *degrees.pp;
  const std::int64_t others = plan.tp * plan.pp * plan.cp;
  if (row.cluster.gpus % others != 0) {
    reason = fmt::format("{} accelerators are no multiple of tp x pp x cp = {}", row.cluster.gpus,
                         others);
    return false;
  }
  if (!degrees.dp) filled_in.push_back(fmt::format("dp: {}", row.cluster.gpus / others));
  plan.dp = degrees.dp.value_or(row.cluster.gpus / others);
  plan.ep = value_or_one(degrees.ep, "ep", filled_in);
  set_chunks(row, plan, filled_in);
  if (plan.dp * others == row.cluster.gpus) return true;
  reason = fmt::format("dp x tp x pp x cp = {} is not the {} accelerators", plan.dp * others,
                       row.cluster.gpus);
  return false;
}

}  // namespace shardwright::sim
