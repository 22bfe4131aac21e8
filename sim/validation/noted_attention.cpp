#include "sim/validation/noted_attention.hpp"

#include <regex>

#include "sim/validation/negation.hpp"

namespace shardwright::sim {

bool says_attention_by_formula(std::string_view text) {
  return affirms_any(
      text, {"sdpa math", "math sdpa", "sdpa (math", "sdpa: math", "sdpa=math", "sdpa_math",
             "math attention", "math backend", "math kernel", "sdpbackend.math", "naive attention",
             "vanilla attention", "manual attention", "attn_implementation=eager",
             "attn_implementation: eager"});
}

std::string attention_window_in(const std::string& text) {
  // Figures are averaged over sliding windows of steps.
  static const std::regex kWindow(
      R"(\b(?:sliding[-_ ]?window|local|windowed)[-_ ](?:attention|attn)\b(?:[ (=:]{1,3}(?:window )?(?:of |size )*\d{1,7}(?: tokens)?)?)"
      R"(|\bsliding[-_ ]?window(?:[_ ]size)?[ (=:]{1,3}(?:of )?\d{1,7}(?!\d| ?(?:steps|iter|batch|sec|s\b|min)))"
      R"(|\bsliding[-_ ]?window\b(?! ?[(=:]? ?(?:of\b|\d|average|mean|median|size)))"
      R"(|\bSWA[ (=:]{1,3}\d{1,7}\b|\b(?:attention[- ])?window(?:[_ ]size)?(?: of |=| = )\d{1,7} tokens)"
      R"(|\bwindow[_ ]size[ =:]{1,3}\(?\d{1,7}\b|\battention window(?: of)?[ =:]{1,3}\d{1,7}\b)",
      std::regex::icase);
  return affirmed_match(text, kWindow);
}

}  // namespace shardwright::sim
