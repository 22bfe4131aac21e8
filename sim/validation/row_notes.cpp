#include "sim/validation/row_notes.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace shardwright::sim {
std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

bool says(std::string_view text, std::string_view phrase) {
  return lower_case(text).find(lower_case(phrase)) != std::string::npos;
}

bool says_any(std::string_view text, std::initializer_list<std::string_view> phrases) {
  return std::any_of(phrases.begin(), phrases.end(),
                     [text](std::string_view phrase) { return says(text, phrase); });
}

bool notes_say_dropped_tokens(std::string_view notes) {
  return says_any(notes, {"token-drop", "tokendrop", "token drop", "capacity factor"});
}

bool notes_say_balanced_routing(std::string_view notes) {
  return notes_say_dropped_tokens(notes) ||
         says_any(notes, {"balanced router=true", "force-balanced", "force balanced", "balanced)",
                          "forced balanc", "force balanc", "force-load-balanc", "force load balanc",
                          "force_load_balanc", "forced load balanc"});
}

bool notes_say_no_fused_attention(std::string_view notes) {
  return says_any(notes, {"no flash", "without flash", "unfused attention", "flash attention off",
                          "eager attention"});
}

bool notes_say_fused_attention(std::string_view notes) {
  return says_any(notes, {"flash attention", "flashattention", "flash-attention", "flash-attn",
                          "flash_attn", "flash_attention"}) &&
         !notes_say_no_fused_attention(notes);
}

bool notes_say_distributed_optimizer(std::string_view notes) {
  return says_any(notes, {"distributed optimizer", "distributed-optimizer"}) &&
         !says_any(notes, {"no distributed optimizer", "without distributed optimizer",
                           "distributed optimizer off", "distributed optimizer did not"});
}

bool notes_say_interleaved(std::string_view notes) {
  return says(notes, "interleav") &&
         !says_any(notes, {"no interleav", "not interleav", "non-interleav", "without interleav"});
}

bool notes_say_hybrid_shard(std::string_view notes) {
  return says_any(notes, {"hsdp", "hybrid shard"});
}

bool notes_say_no_tensor_overlap(std::string_view notes) {
  return says_any(notes, {"no tp/", "no tp overlap", "no tp comm overlap"});
}

bool notes_say_expert_overlap(std::string_view notes) {
  return says_any(notes, {"ep-comm overlap=true", "ep overlap", "moe a2a overlap",
                          "ep all-to-all overlap on", "1f1b overlap"}) &&
         !says_any(notes, {"no ep overlap", "ep-comm overlap=false"});
}

bool notes_say_tokens_once_per_node(std::string_view notes) {
  return says_any(notes, {"deepep", "hybridep"});
}

bool notes_say_no_further_tokens(std::string_view notes) {
  return says_any(notes, {"without mtp layer", "mtp disabled", "no mtp"});
}

bool notes_say_cuda_graphs(std::string_view notes) {
  return says_any(notes, {"scope full_iteration", "cuda graphs full_iteration"});
}

bool notes_say_partial_graphs(std::string_view notes) {
  return says_any(notes, {"graphs transformer_engine scope", "graph transformer_engine scope",
                          "te-scoped cuda graphs", "te cuda graphs", "partial cg"});
}

bool notes_say_not_compiled(std::string_view notes) {
  return says(notes, "torch.compile off");
}

std::optional<std::int64_t> expert_tensor_parallel_in(std::string_view notes) {
  constexpr std::string_view kKey = "ETP";
  const auto place = notes.find(kKey);
  if (place == std::string_view::npos) return std::nullopt;
  std::string_view rest = notes.substr(place + kKey.size());
  if (rest.starts_with('=')) rest.remove_prefix(1);
  std::optional<std::int64_t> degree;
  while (true) {
    std::int64_t number = 0;
    const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (parsed.ec != std::errc{}) return degree;
    if (number > 0) degree = number;
    rest.remove_prefix(static_cast<std::size_t>(parsed.ptr - rest.data()));
    if (!rest.starts_with('/')) return degree;
    rest.remove_prefix(1);
  }
}

bool notes_say_experts_as_attention(std::string_view notes) {
  return says_any(notes, {"experts use the same TP as attention", "ETP=TP", "without folding"});
}

bool notes_say_fp8_weights(std::string_view notes) {
  return says_any(notes, {"fp8 params", "fp8 weights", "fp8_param_gather"});
}

}  // namespace shardwright::sim
