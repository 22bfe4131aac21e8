#include "sim/validation/row_words.hpp"

#include <cctype>
#include <regex>
#include <string>

#include "sim/validation/accelerator_text.hpp"
#include "sim/validation/negation.hpp"
#include "sim/validation/row_notes.hpp"

namespace shardwright::sim {
namespace {

std::optional<ScheduleKind> zero_bubble_in(const std::string& text) {
  if (says_any(text, {"zb1p", "zbh1"})) return ScheduleKind::ZbH1;
  if (says_any(text, {"zb2p", "zbh2"})) return ScheduleKind::ZbH2;
  if (says_any(text, {"zbv"})) return ScheduleKind::ZbV;
  return std::nullopt;
}

// The format that a text names first, of those that a recipe may have beside each other.
std::optional<Precision> format_in(std::string_view text) {
  const std::string words = letters_and_digits(text);
  // The format of the matrix products names a recipe, that of the other ops may stand beside it.
  if (says_any(words, {"mxfp4", "int8", "int4"})) return std::nullopt;
  if (says_any(words, {"fp4", "float4"}) && !denies_any(text, {"fp4", "nvfp4", "float4"}))
    return Precision::Nvfp4;
  if (says_any(words, {"fp8", "float8", "f8e4m3", "e4m3"}) &&
      !denies_any(text, {"fp8", "mxfp8", "float8", "f8e4m3", "e4m3"}))
    return Precision::Fp8;
  if (says_any(words, {"bf16", "bfloat", "brainfloat"})) return Precision::Bf16;
  if (says_any(words, {"fp16", "float16", "f16", "half"}) ||
      is_any(words, {"16", "16mixed", "16true"}))
    return Precision::Fp16;
  if (says_any(words, {"tf32", "tensorfloat32"})) return Precision::Tf32;
  if (says_any(words, {"fp32", "float32", "f32", "single", "32bit", "fullprecision"}) ||
      is_any(words, {"32", "32true"}))
    return Precision::Fp32;
  return std::nullopt;
}

// "bf16, fp8 optimizer states", "gradients in fp32": formats of what is kept or sent, which matrix
// products are not in.
std::string without_other_formats(const std::string& text) {
  static const std::regex kOf(
      R"(\b(?:mx|nv)?(?:bf|fp|int|float|bfloat)-?\d{1,2}(?:[-_]e\dm\d)?(?:[ -](?!and\b|with\b|for\b)[a-z]+){0,2}?[ -](?:optim\w*|adam\w*|moment\w*|states?|master|main|grad\w*|(?:all-?)?gather\w*|all-?reduce\w*|reduc\w*|comm\w*|kv|cache|dispatch|storage|attention|logits|embedding\w*)\b[^,;+()/]*)",
      std::regex::icase);
  static const std::regex kIn(
      R"(\b(?:optim\w*|adam\w*|moments?|states?|master(?: weights?)?|main grad\w*|grad\w*|(?:all-?)?gather\w*|all-?reduce\w*|reduc\w*|comm\w*|cache|dispatch|attention|logits|embedding\w*)(?: (?:are|is|kept|stored|done|was|were))?(?: in\b|:| =|=| at\b)? ?(?:mx|nv)?(?:bf|fp|int|float|bfloat)-?\d{1,2}\b)",
      std::regex::icase);
  return std::regex_replace(std::regex_replace(text, kOf, ""), kIn, "");
}

}  // namespace

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

std::optional<Precision> precision_in(std::string_view text) {
  const std::string products = without_other_formats(std::string(text.substr(0, kMostOfName)));
  const auto of_products = products.size() == text.size() ? std::nullopt : format_in(products);
  return of_products ? of_products : format_in(text);
}

Precision usual_precision(std::string_view gpu) {
  return says(accelerator_name(std::string(gpu)), "v100") ? Precision::Fp16 : Precision::Bf16;
}

bool names_other_format(std::string_view text) {
  static const std::regex kFormat(R"((?:fp|float|int|nf|hif)\d|posit|double|(?:^|[^\d])[1-8]bit)");
  return !precision_in(text) && std::regex_search(letters_and_digits(text), kFormat);
}

std::optional<ScheduleKind> schedule_in(std::string_view text, std::int64_t vpp) {
  const std::string words = letters_and_digits(text);
  if (const auto zero_bubble = zero_bubble_in(words)) return zero_bubble;
  if (says_any(words, {"zerobubble", "dualpipev"})) return std::nullopt;
  if (says_any(words, {"dualpipe"})) return ScheduleKind::DualPipe;
  if (says_any(words, {"gpipe", "afab", "allforwardallbackward"})) return ScheduleKind::GPipe;
  if (says_any(words, {"1f1b", "interleav", "virtual", "pipedreamflush", "vpp"}))
    return vpp > 1 ? ScheduleKind::Interleaved : ScheduleKind::OneFOneB;
  return std::nullopt;
}

}  // namespace shardwright::sim
