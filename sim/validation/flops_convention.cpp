#include "sim/validation/flops_convention.hpp"

#include <algorithm>
#include <cctype>
#include <regex>

#include "sim/step/simulate.hpp"
#include "sim/validation/negation.hpp"
#include "sim/validation/row_notes.hpp"

namespace shardwright::sim {
namespace {

// In small letters, with one sign for products and no blanks around it: "6 × N × T" is "6*n*t".
// Single blanks elsewhere, so that the patterns below need no repetition without a bound.
std::string normalised(std::string_view text) {
  std::string lower = lower_case(text);
  for (const std::string_view sign : {"×", "·", "⋅", "∙"}) {
    for (auto place = lower.find(sign); place != std::string::npos; place = lower.find(sign, place))
      lower.replace(place, sign.size(), 1, '*');
  }
  std::string result;
  for (const char c : lower) {
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (blank && (result.empty() || result.back() == ' ' || result.back() == '*')) continue;
    if (c == '*' && !result.empty() && result.back() == ' ') result.pop_back();
    result += blank ? ' ' : c;
  }
  return result;
}

bool matches(const std::string& text, const std::regex& pattern) {
  return std::regex_search(text, pattern);
}

// Texts are in small letters already.
constexpr auto kSyntax = std::regex::ECMAScript | std::regex::optimize;

// "6ND", "6*N*T", "6*N*tokens", "6 N per token", "8*N*tokens": products of weights and tokens; not
// where a term for attention is added, "6*N*T + 12*L*h*s".
std::regex product_of_weights(char passes) {
  std::string pattern = R"((^|[^a-z0-9._*]))";
  pattern += passes;
  pattern +=
      R"([* ]?(?:n|p|params|parameters)(?:[* ]?(?:d|t|tokens?)| ?(?:flops? ?)?(?:/|per) ?token))"
      R"((?![a-z0-9_])(?! ?(?:\+|plus)))";
  return std::regex(pattern, kSyntax);
}

// Megatron-LM's, of three passes (72 B s l h^2 …) and of four (96 B s l h^2 …).
std::regex formula_of_layers(const std::string& factor) {
  std::string pattern = R"((^|[^0-9.]))";
  pattern += factor;
  pattern += R"([* ]?(?:b|l|s)[* ]?(?:b|l|s))";
  return std::regex(pattern, kSyntax);
}

// Two operations of each weight in each pass: three passes without recomputation, four with it.
bool is_product_of_three_passes(const std::string& text) {
  static const std::regex kSix = product_of_weights('6');
  return matches(text, kSix);
}

bool is_product_of_four_passes(const std::string& text) {
  static const std::regex kEight = product_of_weights('8');
  return matches(text, kEight);
}

bool counts_three_passes(const std::string& text) {
  static const std::regex kLayers = formula_of_layers("72");
  return is_product_of_three_passes(text) || matches(text, kLayers);
}

bool counts_four_passes(const std::string& text) {
  static const std::regex kLayers = formula_of_layers("96");
  return is_product_of_four_passes(text) || matches(text, kLayers);
}

bool names_attention_term(const std::string& text) {
  static const std::regex kTerm(
      R"((^|[^0-9.])(?:12|6)[* ]?(?:l|n_?l)[* ]?[a-z]|(?:\+|plus|with|including|includes) (?:the )?(?:self-)?att(?:entio)?n)",
      kSyntax);
  return matches(text, kTerm) && !denies_any(text, {"with attention", "including attention"});
}

// "no attention FLOPs", "attention scores are ignored".
bool leaves_scores_out(const std::string& text) {
  static const std::regex kBefore(
      R"((^|[^a-z])(?:no|without|w/o|excluding|excludes|exclude|ignoring|ignores|ignore|omitting|omits|neglecting|neglects|not counting|not including|not include|not count) (?:the )?(?:quadratic |self[- ])?attention(?:[- ](?:scores?|flops?|flop/s|terms?|matri|products?|quadratic|part)| ?$| ?[,;.:)]| and | or ))",
      kSyntax);
  static const std::regex kBehind(
      R"(attention(?:[- ](?:scores?|flops?|terms?|matrix|matrices|products?|part)){0,3} (?:(?:is|are|was|were) )?(?:ignored|excluded|omitted|neglected|disregarded|left out|not (?:counted|included|considered)))",
      kSyntax);
  return matches(text, kBefore) || matches(text, kBehind);
}

// "causal mask ignored", "ignores the causal mask", "causal attention counted in full".
bool ignores_causality(const std::string& text) {
  static const std::regex kBehind(
      R"(causal[a-z]{0,8}(?:[- ][a-z]{1,12}){0,3} (?:ignored|disregarded|neglected|in full|as full|fully))",
      kSyntax);
  static const std::regex kBefore(
      R"((?:ignor|disregard|neglect)[a-z]{0,4}(?: [a-z]{1,12}){0,2} causal)", kSyntax);
  return matches(text, kBehind) || matches(text, kBefore);
}

double attention_share_in(const std::string& text) {
  if (ignores_causality(text)) return 1.0;
  if (leaves_scores_out(text)) return 0.0;
  if (affirms_any(text, {"causal", "halved", "half of the attention", "half the attention"}))
    return 0.5;
  const bool weights = is_product_of_three_passes(text) || is_product_of_four_passes(text);
  return weights && !names_attention_term(text) ? 0.0 : 1.0;
}

bool says_counted(const std::string& text) {
  return affirms_any(text, {"recompute counted",
                            "recomputation counted",
                            "recompute is counted",
                            "recomputation is counted",
                            "recompute included",
                            "recomputation included",
                            "recompute is included",
                            "recomputation is included",
                            "includes recomp",
                            "including recomp",
                            "include recomp",
                            "includes activation recomp",
                            "including activation recomp",
                            "includes full recomp",
                            "counts recomp",
                            "counting recomp",
                            "with recomp",
                            "with activation recomp",
                            "with full recomp",
                            "with full activation recomp"});
}

bool says_four_passes(const std::string& text) {
  return affirms_any(text, {"extra forward", "additional forward", "4 passes", "four passes"});
}

CountedRecomputation recomputation_in(const std::string& text) {
  if (denies_any(text, {"recomp", "activation recomp", "rematerialization"}))
    return CountedRecomputation::None;
  const bool three = counts_three_passes(text);
  const bool four = counts_four_passes(text);
  const bool model = affirms_any(text, {"mfu", "model flop", "model tflop", "model-flop"});
  // "Model FLOPs (no recompute); hardware FLOPs add recomputed ones": MFU and the like are the
  // former.
  if (model && says_any(text, {"no recomp", "without recomp"})) return CountedRecomputation::None;
  // "8*N*tokens with recompute, 6*N*tokens without".
  if (three && four) return model ? CountedRecomputation::None : CountedRecomputation::AsRun;
  if (four || says_four_passes(text)) return CountedRecomputation::Whole;
  const bool hardware = affirms_any(
      text, {"hfu", "hardware flop", "hardware tflop", "hardware-flop", "hardware utili"});
  return says_counted(text) || (hardware && !model) ? CountedRecomputation::AsRun
                                                    : CountedRecomputation::None;
}

// Of all layers.
double recomputed_share(const ModelSpec& model, const Plan& plan) {
  if (plan.recompute != RecomputePolicy::Full) return 0.0;
  const std::int64_t chunk = plan.even_chunk(model.layers);
  if (plan.recompute_layers == 0 || plan.recompute_layers >= chunk) return 1.0;
  return static_cast<double>(plan.recompute_layers) / static_cast<double>(chunk);
}

}  // namespace

FlopsConvention flops_convention_in(std::string_view stated) {
  const std::string text = normalised(stated);
  return {.attention_share = attention_share_in(text),
          .recomputation = recomputation_in(text),
          .peak_is_bf16 = affirms_any(text, {"bf16 peak", "bf16 dense peak", "peak bf16"})};
}

std::string description_of(const FlopsConvention& convention) {
  std::string text = convention.attention_share == 0.0   ? "no attention scores"
                     : convention.attention_share == 0.5 ? "causal half of the attention scores"
                                                         : "attention scores in full";
  switch (convention.recomputation) {
    case CountedRecomputation::None:
      text += ", recomputation not counted";
      break;
    case CountedRecomputation::AsRun:
      text += ", recomputation counted where the plan has it";
      break;
    case CountedRecomputation::Whole:
      text += ", recomputation of all layers counted";
      break;
  }
  return text + (convention.peak_is_bf16 ? ", of the bf16 peak" : "");
}

Flop counted_flop(const ModelSpec& model, const Plan& plan, const FlopsConvention& convention) {
  const double tokens = static_cast<double>(plan.global_batch) * static_cast<double>(plan.seq_len);
  const AttentionSpec& attention = model.attention;
  const auto score_width = static_cast<double>(
      attention.heads * (attention.head_dim + attention.value_head_dim()) * model.layers);
  // Two FLOP per product, a forward pass and two of its size backward.
  const double scores = 6.0 * tokens * score_width * static_cast<double>(plan.seq_len);
  const double head = 6.0 * tokens * static_cast<double>(model.hidden * model.vocab);
  const double counted =
      model_flop_per_step(model, plan).value() - (1.0 - convention.attention_share) * scores;
  const double share = convention.recomputation == CountedRecomputation::Whole ? 1.0
                       : convention.recomputation == CountedRecomputation::AsRun
                           ? recomputed_share(model, plan)
                           : 0.0;
  return Flop(counted + share * (counted - head) / 3.0);
}

}  // namespace shardwright::sim
