#include "planner/wording.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include "core/base/enum_names.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/pools.hpp"
#include "planner/pool_search.hpp"

namespace shardwright::planner {
namespace {

std::string capitalized(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string whole_percent(double ratio) {
  return format_percent(ratio, 0) + " %";
}

// The bottleneck of a plan that spends most of its step on this use.
const char* bound_by(TimeUse use) {
  constexpr EnumArray<TimeUse, const char*> kBounds{
      {"compute-bound", "bound by memory bandwidth", "bound by kernels that collectives slow down",
       "communication-bound", "bound by copies to the host", "bound by the pipeline bubble",
       "host-bound", "bound by slower ranks"}};
  return kBounds[use];
}

// "GEMMs take 68 % of the step and attention 19 %", "exposed communication takes 10 % of the step,
// most of it tensor-parallel".
std::string share_text(const TimeShare& share, const char* of_step) {
  const bool is_compute = share.use == TimeUse::Compute;
  if (is_compute && share.mainly) {
    const bool gemms = share.mainly == sim::StepPart::Gemm;
    return fmt::format("{} {} {}{} and {} {}", gemms ? "GEMMs" : "attention",
                       gemms ? "take" : "takes", whole_percent(share.mainly_share), of_step,
                       gemms ? "attention" : "GEMMs",
                       whole_percent(share.share - share.mainly_share));
  }
  const bool plural =
      is_compute || share.use == TimeUse::MemoryBound || share.use == TimeUse::Offload;
  std::string text = fmt::format("{} {} {}{}", name_of(share.use), plural ? "take" : "takes",
                                 whole_percent(share.share), of_step);
  if (!share.mainly) return text;
  const bool most = share.mainly_share > 0.5 * share.share;
  return text + (most ? ", most of it " : ", the largest part of it ") + part_within(*share.mainly);
}

// Gains below this are rounding; those of a percent and more are named.
constexpr double kNoGain = 0.0005, kNamedGain = 0.01;
constexpr std::size_t kMostNamed = 2;

std::string gains_text(const Explanation& explanation) {
  std::vector<Sensitivity> gains = explanation.sensitivities;
  std::stable_sort(gains.begin(), gains.end(),
                   [](const Sensitivity& a, const Sensitivity& b) { return a.gain > b.gain; });
  if (gains.empty()) return "";
  const std::string more = fmt::format("{} % more", format_number(100.0 * explanation.gain));
  if (gains.front().gain < kNoGain)
    return fmt::format(" {} of any single resource would not make it faster.", more);
  std::string text =
      fmt::format(" {} {} would make it {} % faster", more, name_of(gains.front().resource),
                  format_percent(gains.front().gain));
  std::size_t named = 1;
  for (; named < std::min(gains.size(), kMostNamed) && gains[named].gain >= kNamedGain; ++named)
    text +=
        fmt::format(", {} {} %", name_of(gains[named].resource), format_percent(gains[named].gain));
  if (named == gains.size()) return text + ".";
  const double rest = std::max(1.0, std::ceil(100.0 * gains[named].gain));
  return text + fmt::format("; no other resource helps by more than {:.0f} %.", rest);
}

// Two rates of which one is higher.
struct Lead {
  std::string ahead, behind;
  double ratio;
};

Lead lead_of(double first, double second, const std::string& first_name,
             const std::string& second_name) {
  return second > first ? Lead{second_name, first_name, second / first}
                        : Lead{first_name, second_name, first / second};
}

std::string percent_above(const Lead& lead) {
  return format_percent(lead.ratio - 1.0) + " %";
}

std::string step_verdict(const Comparison& comparison, const std::string& first,
                         const std::string& second) {
  if (comparison.first.step == comparison.second.step)
    return fmt::format("{} and {} take the same time.", first, second);
  const Lead lead = lead_of(comparison.first_side.tokens_per_s, comparison.second_side.tokens_per_s,
                            first, second);
  constexpr double kFactor = 2.0;  // from here on, factors read better than percentages
  if (lead.ratio < kFactor)
    return fmt::format("{} is {} faster than {}.", lead.ahead, percent_above(lead), lead.behind);
  return fmt::format("{} is {} times as fast as {}.", lead.ahead, format_fixed(lead.ratio, 1),
                     lead.behind);
}

std::string rate_verdict(const Comparison& comparison, const std::string& first,
                         const std::string& second) {
  const ComparedSide &one = comparison.first_side, &other = comparison.second_side;
  const std::string why = fmt::format(
      " (a step trains {} tokens with {} and {} with {}, so step times do not compare).",
      format_fixed(one.tokens, 0), first, format_fixed(other.tokens, 0), second);
  if (one.tokens_per_s == other.tokens_per_s)
    return fmt::format("{} and {} train as many tokens per second", first, second) + why;
  const Lead lead = lead_of(one.tokens_per_s, other.tokens_per_s, first, second);
  return fmt::format("{} trains {} more tokens per second than {}", lead.ahead, percent_above(lead),
                     lead.behind) +
         why;
}

std::string accelerator_verdict(const Comparison& comparison, const std::string& first,
                                const std::string& second) {
  const ComparedSide &one = comparison.first_side, &other = comparison.second_side;
  const Lead each = lead_of(one.tokens_per_s / one.accelerators,
                            other.tokens_per_s / other.accelerators, first, second);
  const Lead all = lead_of(one.tokens_per_s, other.tokens_per_s, first, second);
  std::string text = fmt::format(
      "Per accelerator, {} trains {} more tokens per second than {} ({} and {} accelerators, so "
      "step times do not compare). In total, {} trains {} more.",
      each.ahead, percent_above(each), each.behind, format_fixed(one.accelerators, 0),
      format_fixed(other.accelerators, 0), all.ahead, percent_above(all));
  const bool priced = one.dollars_per_token > 0.0 && other.dollars_per_token > 0.0;
  if (priced && one.dollars_per_token != other.dollars_per_token) {
    const Lead dearer = lead_of(one.dollars_per_token, other.dollars_per_token, first, second);
    text += fmt::format(" A token costs {} more with {}.", percent_above(dearer), dearer.ahead);
  }
  return text;
}

std::string change_text(const Comparison& comparison, const std::string& first,
                        const std::string& second) {
  if (!comparison.largest_change) return "";
  const PartChange& change = *comparison.largest_change;
  const bool same_tokens = comparison.first_side.tokens == comparison.second_side.tokens;
  return fmt::format(" The largest difference is in {}: {} spends {} {} on it{}.",
                     part_text(change.part), second, format_time(Seconds(std::abs(change.seconds))),
                     change.seconds > 0.0 ? "more" : "less",
                     same_tokens ? "" : fmt::format(", for as many tokens as a step of {}", first));
}

// The reason why plans break a rule, as the end of "No plan fits 500 GPUs: …".
std::string rule_text(const PlanRequest& request, PlanRule rule) {
  switch (rule) {
    case PlanRule::Precision:
      return fmt::format("{} does not multiply in {}", request.cluster.accelerator.name,
                         name_of(request.precision));
    case PlanRule::Heads:
    case PlanRule::KvHeads:
      return "the attention heads are not divisible by the tensor-parallel sizes";
    case PlanRule::FfnHidden:
      return "the feed-forward width is not divisible by the tensor-parallel sizes";
    case PlanRule::Experts:
      return "the experts are not divisible by the expert-parallel sizes";
    case PlanRule::ExpertFfn:
      return "the width of an expert is not divisible by the expert tensor-parallel sizes";
    case PlanRule::ExpertGroups:
      return "the ranks of a stage are not divisible into groups of experts";
    case PlanRule::ContextParallel:
    case PlanRule::SequenceParallel:
      return fmt::format("sequences of {} are not divisible among the ranks that share one",
                         format_plural(request.seq_len, "token"));
    case PlanRule::Positions:
      return fmt::format("sequences of {} are longer than the {} learned positions of the model",
                         format_plural(request.seq_len, "token"),
                         format_count(request.model.position_embeddings));
    case PlanRule::GlobalBatch:
      return fmt::format(
          "a global batch of {} is not divisible by the data-parallel sizes that {} allow",
          format_count(request.global_batch), format_plural(request.gpus, "GPU"));
    case PlanRule::StepSize:
      return fmt::format(
          "a global batch of {} has too many microbatches for its step to be simulated",
          format_count(request.global_batch));
    case PlanRule::ScheduleShape:
      return "no pipeline schedule runs the stages with their number of microbatches";
    case PlanRule::Layers:
      return fmt::format("the {} of the model are too few for the pipeline stages",
                         format_plural(request.model.layers, "layer"));
    case PlanRule::OptimizerOffload:
      return "a node has too little host memory for the optimizer states";
    case PlanRule::Stack:
      return fmt::format("the stack {} does not run the plans", request.stack.name);
    default:
      return fmt::format("the plans break the rule {}", name_of(rule));
  }
}

std::string memory_obstacle_text(const PlanRequest& request, const NoFeasiblePlan& none) {
  std::string limit = "available " + format_bytes(none.available);
  if (request.memory_share < 1.0)
    limit = format_bytes(none.available) + " that the margin for errors leaves";
  else if (none.available < request.cluster.accelerator.memory)
    limit = "limit of " + format_bytes(none.available);
  return fmt::format("the smallest one needs {} of memory per GPU, {} more than the {}",
                     format_bytes(none.needed), format_bytes(none.shortfall), limit);
}

std::string obstacle_text(const PlanRequest& request, const NoFeasiblePlan& none) {
  const Obstacle& obstacle = none.obstacle;
  const std::string counts = fmt::format(" ({} of {})", format_count(obstacle.plans),
                                         format_plural(obstacle.space, "plan"));
  const std::string constraint = to_string(obstacle.constraint);
  switch (obstacle.kind) {
    case ObstacleKind::Memory:
      return memory_obstacle_text(request, none);
    case ObstacleKind::FusedAttention:
      return fmt::format(
          "only selective recomputation is allowed, and it saves next to no memory, because the "
          "fused attention of the stack {} stores no scores",
          request.stack.name);
    case ObstacleKind::Impossible:
      return fmt::format("none has {}; possible are {}", constraint,
                         to_string(Constraint{obstacle.constraint.field, obstacle.possible}));
    case ObstacleKind::Rule:
      return rule_text(request, obstacle.rule) + counts;
    case ObstacleKind::Fixed:
      return fmt::format("the constraint {} excludes most plans{}", constraint, counts);
    case ObstacleKind::Forbidden:
      return fmt::format("forbidding {} excludes most plans{}", constraint, counts);
  }
  return "";
}

std::string text_of(const Remedy& remedy) {
  const auto count = [&] { return format_count(std::get<std::int64_t>(remedy.value)); };
  const auto bytes = [&] { return std::get<Bytes>(remedy.value); };
  const auto constraint = [&] { return to_string(std::get<Constraint>(remedy.value)); };
  switch (remedy.field) {
    case RemedyField::Gpus:
      return count() + " GPUs";
    case RemedyField::GlobalBatch:
      return "a global batch of " + count();
    case RemedyField::SeqLen:
      return "sequences of " + count() + " tokens";
    case RemedyField::MaxMemory:
      return fmt::format("a memory limit of {} GB", format_gigabytes(bytes()));
    case RemedyField::AcceleratorMemory:
      return fmt::format("accelerators with {} of memory", format_bytes(bytes()));
    case RemedyField::Fixed:
      return "the constraint " + constraint();
    case RemedyField::NotFixed:
      return "no constraint " + constraint();
    case RemedyField::NotForbidden:
      return constraint() + " allowed";
  }
  return "";
}

std::string no_knee_text(const Sweep& sweep) {
  const bool any_fits = std::any_of(sweep.points.begin(), sweep.points.end(),
                                    [](const SweepPoint& point) { return point.fits; });
  switch (sweep.axis) {
    case SweepAxis::Gpus:
      return "Tokens/s of the whole cluster grow up to the largest number of GPUs.";
    case SweepAxis::GlobalBatch:
      return "No batch fits.";
    case SweepAxis::SeqLen:
      return any_fits ? "Every sequence length fits." : "No sequence length fits.";
    default:
      return fmt::format("No knee: each doubling still brings more than {} of tokens/s.",
                         whole_percent(kLeastGainOfDoubling));
  }
}

}  // namespace

const char* accelerator_word(const ClusterSpec& cluster) {
  const auto word_for = [](const AcceleratorSpec& accelerator) {
    switch (accelerator.architecture) {
      case Architecture::Cpu:
        return "CPU rank";
      case Architecture::Tpu:
        return "TPU";
      case Architecture::Gaudi:
      case Architecture::Other:
        return "accelerator";
      default:
        return "GPU";
    }
  };
  const std::string_view word = word_for(cluster.accelerator);
  const bool is_of_all =
      std::all_of(cluster.pools.begin(), cluster.pools.end(),
                  [&](const PoolSpec& pool) { return word == word_for(pool.accelerator); });
  return is_of_all ? word.data() : "accelerator";
}

std::string with_accelerator(std::string text, std::string_view word) {
  constexpr std::string_view kGpu = "GPU";
  if (word == kGpu) return text;
  const bool begins = text.starts_with(kGpu);
  std::string compound(word);
  std::replace(compound.begin(), compound.end(), ' ', '-');
  for (std::size_t at = 0; (at = text.find(kGpu, at)) != std::string::npos;) {
    const bool in_compound = text.compare(at + kGpu.size(), 1, "-") == 0;
    const std::string_view name = in_compound ? std::string_view(compound) : word;
    text.replace(at, kGpu.size(), name);
    at += name.size();
  }
  return begins ? capitalized(std::move(text)) : text;
}

std::string field_text(const InputDifference& input) {
  std::vector<std::string> words = input.path;
  if (words.size() > 1 && words.front() == "plan") words.erase(words.begin());
  if (!words.empty()) words.back() = with_unit(words.back(), 0.0).first;
  std::string text = fmt::format("{}", fmt::join(words, ", "));
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string limit_text(const std::string& plan, const Explanation& explanation) {
  constexpr double kDominant = 0.5, kShown = 0.005;
  const TimeShare &first = explanation.shares[0], &second = explanation.shares[1];
  std::string text =
      fmt::format("{} {}: {}", plan,
                  first.share >= kDominant ? fmt::format("is {}", bound_by(first.use))
                                           : "has no single bottleneck",
                  share_text(first, " of the step"));
  if (second.share >= kShown) text += "; " + share_text(second, "");
  text += '.';
  return explanation.partial ? text : text + gains_text(explanation);
}

std::string verdict_text(const Comparison& comparison, const std::string& first,
                         const std::string& second) {
  std::string text;
  switch (comparison.yardstick) {
    case Yardstick::Step:
      text = step_verdict(comparison, first, second);
      break;
    case Yardstick::TokensPerSecond:
      text = rate_verdict(comparison, first, second);
      break;
    case Yardstick::TokensPerSecondPerAccelerator:
      text = accelerator_verdict(comparison, first, second);
      break;
  }
  text += change_text(comparison, first, second);
  if (!comparison.same_model) text += " The models differ, and so does the value of a token.";
  return capitalized(text);
}

std::string progress_text(const SearchProgress& progress) {
  std::string text =
      fmt::format("{} checked, {} simulated", format_plural(progress.checked, "plan"),
                  format_count(progress.simulated));
  if (progress.best_step) text += fmt::format(", best step {}", format_time(*progress.best_step));
  if (progress.open)
    text += *progress.open > 0 ? fmt::format(", {} not ruled out yet", format_count(*progress.open))
                               : ", the best plans are final";
  return text;
}

std::string no_plan_text(const PlanRequest& request, const NoFeasiblePlan& none) {
  if (!none.pool.empty()) {
    NoFeasiblePlan alone = none;
    alone.pool.clear();
    return fmt::format("No plan fits, on one pool or on several. On {} alone: {}", none.pool,
                       no_plan_text(request_on_pool(request, none.pool), alone));
  }
  const std::string text = fmt::format("No plan fits {}: {}.", format_plural(request.gpus, "GPU"),
                                       obstacle_text(request, none));
  return with_accelerator(text, accelerator_word(request.cluster));
}

std::string remedy_text(const std::vector<Remedy>& remedies, const ClusterSpec& cluster) {
  std::vector<std::string> texts;
  for (const Remedy& remedy : remedies) texts.push_back(text_of(remedy));
  return with_accelerator(fmt::format("{}", fmt::join(texts, " and ")), accelerator_word(cluster));
}

std::string lacking_link_text(SweepAxis axis, const ClusterSpec& cluster) {
  return fmt::format(
      "There is nothing to sweep: {} has {}.", cluster.name,
      axis == SweepAxis::ScaleOutBandwidth ? "no NIC" : "no link between its accelerators");
}

std::string value_text(SweepAxis axis, double value) {
  return is_bandwidth(axis) ? format_number(value / 1e9, 4) : format_count(std::llround(value));
}

std::string plan_field_text(std::string_view pointer) {
  for (const std::string_view prefix : {"/plan/", "/"}) {
    if (!pointer.starts_with(prefix)) continue;
    pointer.remove_prefix(prefix.size());
    break;
  }
  std::string text(pointer);
  for (const char sign : {'/', '_'}) std::replace(text.begin(), text.end(), sign, ' ');
  return text;
}

std::string obstacle_text(const SweepPoint& point, const ClusterSpec& cluster) {
  if (point.fits) return "";
  if (point.broken_rule) {
    return fmt::format("breaks a rule of plans: {} is {}; expected {}",
                       plan_field_text(point.broken_rule->where), point.broken_rule->found,
                       to_string(point.broken_rule->expected));
  }
  if (!point.candidate) return "no plan fits";
  const sim::StepResult& result = point.candidate->result;
  const ClusterSpec pool = stage_cluster(cluster, point.candidate->plan, result.fullest);
  return fmt::format("the plan needs {} of {}", format_bytes(result.memory().peak),
                     format_bytes(pool.accelerator.memory));
}

std::string knee_text(const Sweep& sweep, const ClusterSpec& cluster) {
  const char* accelerator = accelerator_word(cluster);
  if (!sweep.knee) return with_accelerator(no_knee_text(sweep), accelerator);
  const SweepPoint& point = sweep.points[*sweep.knee];
  const std::string at = value_text(sweep.axis, point.value);
  if (sweep.axis == SweepAxis::Gpus) {
    return fmt::format("Knee of the whole cluster's tokens/s at {}: {}.",
                       format_plural(std::llround(point.value), accelerator),
                       cause_text(*sweep.knee_cause));
  }
  if (sweep.axis == SweepAxis::SeqLen) {
    const SweepPoint& next = sweep.points[*sweep.knee + 1];
    return fmt::format("{} tokens is the longest sequence that fits; at {}, {}.", at,
                       value_text(sweep.axis, next.value), obstacle_text(next, cluster));
  }
  const sim::StepResult& result = point.candidate->result;
  const std::string exposed = format_percent(result.time().exposed_total() / result.step);
  // At the smallest value of a sweep the knee may lie below it.
  const bool is_first = *sweep.knee == 0;
  if (sweep.axis == SweepAxis::GlobalBatch) {
    return fmt::format(
        "Knee of tokens/s at {} sequences{}, the smallest batch with {} of the best throughput; "
        "there the bubble takes {} % and exposed communication {} % of the step.",
        at, is_first ? " or fewer" : "", whole_percent(kKneeThroughput),
        format_percent(result.time().bubble / result.step), exposed);
  }
  return fmt::format(
      "Knee of tokens/s at {} GB/s{}: twice as much brings less than {}; exposed communication "
      "takes {} % of the step there, kernels {} %.",
      at, is_first ? " or less" : "", whole_percent(kLeastGainOfDoubling), exposed,
      format_percent(result.time().compute() / result.step));
}

std::string cause_text(const KneeCause& cause) {
  return fmt::format("the share of {} in the step grows from {} on {} to {} on {}",
                     part_text(cause.part), whole_percent(cause.smallest_share),
                     format_plural(cause.smallest_gpus, "accelerator"),
                     whole_percent(cause.beyond_share), format_count(cause.beyond_gpus));
}

std::string cause_text(const SuperlinearCause& cause) {
  constexpr EnumArray<MemoryMeasure, const char*> kMeasures{
      {"offloads its optimizer", "keeps optimizer states in other formats",
       "offloads its activations", "recomputes activations", "recomputes other layers",
       "cuts the model further", "runs smaller microbatches"}};
  return fmt::format(
      "the plan of the smallest size, {} accelerators, {}; {} accelerators reach {}",
      format_count(cause.smallest_gpus),
      cause.measure ? fmt::format("{} for lack of memory, which those of larger sizes need not",
                                  kMeasures[*cause.measure])
                    : "uses each accelerator less well",
      format_count(cause.best_gpus), whole_percent(cause.best_efficiency));
}

std::string estimates_text(const FigureCounts& counts) {
  return fmt::format("{} of the {} hardware and software figures used are estimates",
                     format_count(counts.estimates), format_count(counts.all));
}

}  // namespace shardwright::planner
