#include "sim/validation/noted_experts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <regex>
#include <set>

#include "sim/validation/negation.hpp"
#include "sim/validation/row_notes.hpp"

namespace shardwright::sim {
namespace {

using std::regex_constants::icase;

// All degrees that the notes name undenied. "EP4/8" can be read in two ways, and "Hybrid-EP 2" is
// software.
std::set<std::int64_t> expert_degrees_in(const std::string& notes) {
  static const std::regex kDegree(
      R"((\b(?:hybrid|deep)[-_ ])?\b(?:expert[-_ ](?:model[-_ ])?parallel(?:ism)?|ep)(?:[-_ ](?:size|degree))?(?: ?[=:] ?| of | )?(\d{1,6})(?![\w/%]|[.,]\d))"
      R"(|\b(\d{1,6})-way (?:expert[-_ ]parallel|ep\b))",
      icase);
  const std::string read = notes.substr(0, kMostRead);
  std::set<std::int64_t> degrees;
  std::set<std::string> seen;  // a text may repeat one a thousand times
  for (std::sregex_iterator match(read.begin(), read.end(), kDegree), end; match != end; ++match) {
    if ((*match)[1].matched || !seen.insert(match->str()).second) continue;
    if (!affirms_any(read, {match->str()})) continue;
    const std::int64_t degree = std::stoll((*match)[2].matched ? (*match)[2] : (*match)[3]);
    if (degree > 0) degrees.insert(degree);
  }
  return degrees;
}

// Experts that are cut by tensor parallelism take several ranks each.
bool agrees_with_ranks(const TrainingRow& row, std::int64_t ep) {
  const std::int64_t others =
      row.plan.pp.value_or(1) * expert_tensor_parallel_in(row.notes).value_or(1);
  const bool divides_ranks = row.cluster.gpus % others == 0 && row.cluster.gpus / others % ep == 0;
  return divides_ranks && row.model.moe->experts.value_or(ep) % ep == 0;
}

}  // namespace

void complete_expert_parallel(TrainingRow& row, std::vector<std::string>& filled_in) {
  if (row.plan.ep || !row.model.moe) return;
  const std::set<std::int64_t> degrees = expert_degrees_in(row.notes);
  if (degrees.empty()) return;
  if (degrees.size() > 1) {
    filled_in.push_back(fmt::format("ep {} of the notes: not taken, as they name several",
                                    fmt::join(degrees, ", ")));
  } else if (!agrees_with_ranks(row, *degrees.begin())) {
    filled_in.push_back(
        fmt::format("ep {} of the notes does not agree with the ranks or the experts: not taken",
                    *degrees.begin()));
  } else {
    row.plan.ep = *degrees.begin();
    filled_in.push_back(fmt::format("ep: {}, by the notes", *row.plan.ep));
  }
}

bool notes_say_tokens_exchanged(std::string_view notes) {
  static const std::regex kDispatcher(
      R"(\b(?:all[-_ ]?to[-_ ]?all|all2all|a2a)(?:[-_ ]v)?[-_ ](?:token[-_ ])?dispatch)"
      R"(|(?:^|[^a-z0-9])dispatcher(?:[-_ ]type)?(?: ?[=:] ?| )["']?(?:all[-_ ]?to[-_ ]?all|all2all|a2a|flex)\b)",
      icase);
  return notes_say_tokens_once_per_node(notes) ||
         affirms_any(notes, {"expert parallel", "expert-parallel", "expert_parallel"}) ||
         !affirmed_match(std::string(notes), kDispatcher).empty();
}

}  // namespace shardwright::sim
