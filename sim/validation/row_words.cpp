#include "sim/validation/row_words.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <initializer_list>
#include <string>

#include "sim/validation/row_notes.hpp"

namespace shardwright::sim {
namespace {

bool holds_any(const std::string& text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string::npos; });
}

bool is_any(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

// The first number of a text; 0 without one.
std::int64_t number_in(std::string_view text) {
  const auto place = text.find_first_of("0123456789");
  std::int64_t number = 0;
  if (place != std::string_view::npos)
    std::from_chars(text.data() + place, text.data() + text.size(), number);
  return number;
}

std::optional<ScheduleKind> zero_bubble_in(const std::string& text) {
  if (holds_any(text, {"zb1p", "zbh1"})) return ScheduleKind::ZbH1;
  if (holds_any(text, {"zb2p", "zbh2"})) return ScheduleKind::ZbH2;
  if (holds_any(text, {"zbv"})) return ScheduleKind::ZbV;
  return std::nullopt;
}

}  // namespace

std::string letters_and_digits(std::string_view text) {
  std::string result;
  for (const char raw : text) {
    const auto c = static_cast<unsigned char>(raw);
    if (std::isalnum(c) != 0) result += static_cast<char>(std::tolower(c));
  }
  return result;
}

std::optional<Precision> precision_in(std::string_view text) {
  const std::string words = letters_and_digits(text);
  // The format of the matrix products names a recipe, that of the other ops may stand beside it.
  if (holds_any(words, {"mxfp4", "int8", "int4"})) return std::nullopt;
  if (holds_any(words, {"fp4", "float4"})) return Precision::Nvfp4;
  if (holds_any(words, {"fp8", "float8", "f8e4m3", "e4m3"})) return Precision::Fp8;
  if (holds_any(words, {"bf16", "bfloat16"})) return Precision::Bf16;
  if (holds_any(words, {"fp16", "float16", "f16", "half"}) || words == "16mixed")
    return Precision::Fp16;
  if (holds_any(words, {"tf32", "tensorfloat32"})) return Precision::Tf32;
  if (holds_any(words, {"fp32", "float32", "f32", "single"})) return Precision::Fp32;
  return std::nullopt;
}

Precision usual_precision(std::string_view gpu) {
  return says(gpu, "v100") ? Precision::Fp16 : Precision::Bf16;
}

bool is_any_mixed_precision(std::string_view text) {
  return is_any(letters_and_digits(text), {"mixed", "amp", "mixedprecision", "autocast"});
}

std::optional<RecomputeWords> recompute_in(std::string_view text) {
  const std::string words = letters_and_digits(text);
  if (is_any(words, {"none", "no", "off", "false", "disabled", "na", "0"}) ||
      holds_any(words, {"norecompute", "nocheckpoint", "withoutrecompute", "noactivation"}))
    return RecomputeWords{};
  // "sac" is PyTorch's selective checkpointing; "minimal" is MaxText's policy that keeps the
  // results of matrix products.
  if (holds_any(words, {"selective", "coreattn", "coreattention"}) ||
      is_any(words, {"attention", "attn", "attentiononly", "attnonly", "sac", "minimal"}))
    return RecomputeWords{RecomputePolicy::Selective};
  if (words.starts_with("every") && number_in(text) > 1)
    return RecomputeWords{RecomputePolicy::Full, 0, number_in(text)};
  // A part of each layer, as no policy has it.
  if (holds_any(words, {"mlp", "ffn", "layernorm", "moeact"}) && !holds_any(words, {"full"}))
    return std::nullopt;
  if (holds_any(words, {"uniform"})) return RecomputeWords{RecomputePolicy::Full};
  if (holds_any(words, {"full", "block"}))
    return RecomputeWords{RecomputePolicy::Full, number_in(text)};
  if (is_any(words, {"true", "yes", "on", "enabled", "all"}) ||
      holds_any(words, {"checkpoint", "recompute"}))
    return RecomputeWords{RecomputePolicy::Full};
  return std::nullopt;
}

std::optional<ScheduleKind> schedule_in(std::string_view text, std::int64_t vpp) {
  const std::string words = letters_and_digits(text);
  if (const auto zero_bubble = zero_bubble_in(words)) return zero_bubble;
  if (holds_any(words, {"zerobubble", "dualpipev"})) return std::nullopt;
  if (holds_any(words, {"dualpipe"})) return ScheduleKind::DualPipe;
  if (holds_any(words, {"gpipe", "afab", "allforwardallbackward"})) return ScheduleKind::GPipe;
  if (holds_any(words, {"1f1b", "interleav", "virtual", "pipedreamflush", "vpp"}))
    return vpp > 1 ? ScheduleKind::Interleaved : ScheduleKind::OneFOneB;
  return std::nullopt;
}

}  // namespace shardwright::sim
