#include "sim/validation/software_generation.hpp"

#include <algorithm>
#include <array>
#include <regex>
#include <string_view>

#include "sim/validation/accelerator_text.hpp"
#include "sim/validation/framework_family.hpp"
#include "sim/validation/row_notes.hpp"
#include "sim/validation/row_words.hpp"
#include "sim/validation/stack_name.hpp"

namespace shardwright::sim {
namespace {

constexpr std::int64_t kFusedAttentionYear = 2023;

// Layers of Transformer Engine, which is made for Hopper and later, became Megatron-LM's default in
// the first months of 2024 (`--transformer-impl`, megatron/training/arguments.py); what was
// published in that year on older devices was measured before.
constexpr std::int64_t kCoreYearOnHopper = 2024, kCoreYear = 2025;

bool is_hopper_or_later(const TrainingRow& row) {
  return says_any(accelerator_name(row.cluster.gpu),
                  {"h100", "h200", "h800", "h20", "b200", "b300"});
}

// AMD's port of Transformer Engine is made for the MI300 series
// (github.com/ROCm/TransformerEngine).
bool has_transformer_engine(const TrainingRow& row) {
  return is_hopper_or_later(row) ||
         says_any(accelerator_name(row.cluster.gpu), {"mi300", "mi325", "mi355"});
}

bool is_volta(const TrainingRow& row) {
  return says(accelerator_name(row.cluster.gpu), "v100");
}

// "NeMo 22.09", "nemo:23.05": two digits of a year, a stop and two of a month; 0 without.
std::int64_t release_year_in(const std::string& stack) {
  const std::string text = ' ' + stack + ' ';
  for (auto stop = text.find('.'); stop != std::string::npos; stop = text.find('.', stop + 1)) {
    if (stop < 3 || stop + 3 >= text.size()) continue;
    const bool apart =
        !is_digit(text[stop - 3]) && text[stop - 3] != '.' && !is_digit(text[stop + 3]);
    const bool year = text[stop - 2] == '2' && is_digit(text[stop - 1]);
    const bool month = (text[stop + 1] == '0' || text[stop + 1] == '1') && is_digit(text[stop + 2]);
    if (apart && year && month) return 2020 + (text[stop - 1] - '0');
  }
  return 0;
}

// Megatron-LM's releases: v2.x of 2021, v3.0 of 2022, by year and month since 23.04; 0 without one
// (github.com/NVIDIA/Megatron-LM/releases).
std::int64_t megatron_release_year(const std::string& stack) {
  static const std::regex kNumber(R"(megatron[-_ ]?lm[-_ (,]*v?([23])\.\d\b)", std::regex::icase);
  std::smatch match;
  if (std::regex_search(stack, match, kNumber)) return match[1] == "2" ? 2021 : 2022;
  return release_year_in(stack);
}

std::int64_t megatron_year(const TrainingRow& row) {
  const std::int64_t release = megatron_release_year(without_denied_frameworks(row.stack));
  return release > 0 ? release : software_year(row);
}

bool runs_megatron_core(const TrainingRow& row) {
  const std::int64_t year = megatron_year(row);
  return year >= kCoreYear || (year >= kCoreYearOnHopper && has_transformer_engine(row));
}

// Pipelines came in 2021 (arXiv 2104.04473), sequence parallelism in 2022 (arXiv 2205.05198).
std::string megatron_lm_of_year(const TrainingRow& row) {
  const std::int64_t year = megatron_year(row);
  const bool pipeline = row.plan.pp.value_or(1) > 1;
  if (year <= 2020 && !pipeline) return "megatron-lm-2020";
  if (year <= 2021) return "megatron-lm-2021";
  return year == 2022 ? "megatron-lm-2022" : "megatron-lm-2023";
}

// NeMo took Transformer Engine's layers up with the first systems of Hopper, in 2023; what was
// published in that year on older devices was measured before.
constexpr std::int64_t kNemoYearOnHopper = 2023, kNemoYear = 2024;

bool names_nemo(const std::string& name) {
  const auto holds = [&name](const char* part) { return name.find(part) != std::string::npos; };
  return (holds("nemo") || holds("bignlp")) && !holds("automodel") && !holds("nemotron");
}

// Submissions on Hopper and later were all but a few made with NVIDIA's code, which is NeMo since
// GPT-3 became a benchmark in 2023 (MLPerf Training v3.0).
bool is_submission_by_nemo(const TrainingRow& row, const std::string& name) {
  return name.find("mlperf") != std::string::npos &&
         !framework_family(without_denied_frameworks(row.stack)) && is_hopper_or_later(row) &&
         software_year(row) >= kNemoYearOnHopper;
}

}  // namespace

std::int64_t software_year(const TrainingRow& row) {
  if (row.source_year) return *row.source_year;
  if (has_transformer_engine(row)) return kCoreYear;
  return is_volta(row) ? 2021 : kFusedAttentionYear;
}

std::string megatron_generation(const TrainingRow& row) {
  const std::string name = letters_and_digits(without_denied_frameworks(row.stack));
  const auto holds = [&name](const char* part) { return name.find(part) != std::string::npos; };
  const bool megatron = holds("megatron");
  if (megatron && holds("deepspeed")) return "megatron-deepspeed";
  if (megatron && (holds("core") || runs_megatron_core(row))) return "megatron-core";
  const bool old = is_before_fused_attention(row);
  // Megatron-LM's layers of 2021 under DeepSpeed (arXiv 2204.06745, section 2.2).
  if (old && holds("neox")) return "megatron-deepspeed";
  return name == "megatron" || holds("megatronlm") || old ? megatron_lm_of_year(row) : "";
}

std::string nemo_generation(const TrainingRow& row) {
  constexpr std::array<std::string_view, 3> kOfOneGeneration = {"nemo2022", "nemote",
                                                                "nemotransformerengine"};
  const std::string name = letters_and_digits(without_denied_frameworks(row.stack));
  const bool said =
      std::find(kOfOneGeneration.begin(), kOfOneGeneration.end(), name) != kOfOneGeneration.end();
  if (!said && is_submission_by_nemo(row, name)) return "nemo-te";
  if (said || !names_nemo(name)) return "";
  const std::int64_t release = release_year_in(row.stack);
  const bool dated = release > 0 || row.source_year || is_volta(row);
  const std::int64_t year = release > 0 ? release : software_year(row);
  const bool te = year >= kNemoYear || (year >= kNemoYearOnHopper && is_hopper_or_later(row));
  return !dated || te ? "nemo-te" : "nemo-2022";
}

bool is_before_fused_attention(const TrainingRow& row) {
  return software_year(row) < kFusedAttentionYear;
}

}  // namespace shardwright::sim
