#include "sim/validation/row_notes.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <regex>

#include "core/base/letters_and_digits.hpp"
#include "sim/validation/negation.hpp"

namespace shardwright::sim {
namespace {

// "=2", or the last of "=2/8/32/1/1".
std::optional<std::int64_t> last_degree_of(std::string_view rest) {
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

// What stands behind the first of the phrases up to a sign that ends it, in small letters.
std::string clause_behind(std::string_view notes, std::initializer_list<std::string_view> phrases) {
  const std::string lower = lower_case(notes);
  for (const std::string_view phrase : phrases) {
    const auto place = lower.find(phrase);
    if (place == std::string::npos) continue;
    const std::string rest = lower.substr(place + phrase.size());
    return rest.substr(0, std::min(rest.find_first_of(";,()"), rest.find(". ")));
  }
  return "";
}

// A ratio, percentage or number of layers makes a part of it, 0 nothing.
OffloadNote offload_in(std::string_view notes, std::initializer_list<std::string_view> phrases) {
  if (!affirms_any(notes, phrases)) return OffloadNote::None;
  const std::string behind = clause_behind(notes, phrases);
  if (!says_any(behind, {"ratio", "fraction", "share", "layer", "%", "part"}))
    return OffloadNote::Whole;
  const auto place = std::min(behind.find_first_of("0123456789"), behind.size());
  double number = -1.0;
  std::from_chars(behind.data() + place, behind.data() + behind.size(), number);
  return number == 0.0 ? OffloadNote::None : OffloadNote::Part;
}

// What waits on the host as a list: "optimizer and parameter offload", "offloads optimizer states
// and parameters".
const std::regex& offloaded_list() {
  static const std::string kThing =
      R"((?:(?:the|all|both|model|fp32|adam) ){0,3}(?:optimi[sz]er(?:[- ](?:states?|moments?))?|param(?:eter)?s?|(?:master )?weights|grad(?:ient)?s?|activations?))";
  static const std::string kList = kThing + R"((?: ?(?:, ?and|,|&|\+|/|and) ?)" + kThing + "){0,4}";
  static const std::regex kOffload(
      R"(\b)" + kList +
          R"((?: (?:are|is|were|was|both|all|being)){0,2}[- ](?:cpu[- ])?offload\w{0,6}|\boffload\w{0,6}(?: of)?:? )" +
          kList,
      std::regex::icase);
  return kOffload;
}

// The first list with `thing` that is not denied, in small letters; empty where there is none.
std::string offloaded_list_with(std::string_view notes, const std::regex& thing) {
  const std::string read(notes.substr(0, kMostRead));
  for (std::sregex_iterator match(read.begin(), read.end(), offloaded_list()), end; match != end;
       ++match)
    if (std::regex_search(match->str(), thing) && affirms_any(read, {match->str()}))
      return lower_case(match->str());
  return "";
}

// What denies a list as a whole stands before its first thing, and denies none of the others alone.
std::string without_offloaded_lists(std::string_view notes) {
  return std::regex_replace(std::string(notes.substr(0, kMostRead)), offloaded_list(), "");
}

// Tables are compiled from sources, and libraries with a compiler.
std::string without_other_compilations(std::string_view notes) {
  static const std::regex kOther(
      R"(\bcompiled (?:by|from|against|using|for|in|with (?:cuda|rocm|hip|gcc|clang|nvcc|mpi)))"
      R"(|\b(?:results?|figures?|numbers?|data|tables?|rows?|nccl|megablocks|apex|extensions?)"
      R"(|librar(?:y|ies)) (?:(?:was|were|is|are) )?compiled\b)",
      std::regex::icase);
  return std::regex_replace(std::string(notes), kOther, "");
}

// A loss that pulls towards balance forces none.
std::string without_balancing_losses(std::string_view notes) {
  static const std::regex kLoss(R"(\bload[-_ ]balanced\b)", std::regex::icase);
  return std::regex_replace(std::string(notes.substr(0, kMostRead)), kLoss, "");
}

// NeMo AutoModel's `fake_balanced_gate` gives every expert the same number of tokens.
bool notes_say_balanced_gate(std::string_view notes) {
  return affirms_any(notes, {"fake balanc", "fake-balanc", "fake_balanc", "fakebalanc"}) ||
         affirms_any(without_balancing_losses(notes),
                     {"balanced gat", "balanced-gat", "balanced_gat"});
}

}  // namespace

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

bool is_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool notes_say_dropped_tokens(std::string_view notes) {
  return affirms_any(notes, {"token-drop", "tokendrop", "token drop", "capacity factor",
                             "capacity-factor", "capacity_factor"}) &&
         capacity_factor_in(notes).value_or(1.0) > 0.0;
}

std::optional<double> capacity_factor_in(std::string_view notes) {
  static const std::regex kFactor(
      R"(capacity[-_ ]factor(?:-|[ _=:]{0,3}(?:(?:of|is)[ =:]{0,2})?)(-?\d{1,4}(?:\.\d{1,4})?))",
      std::regex::icase);
  const std::string text(notes);
  std::smatch match;
  if (!std::regex_search(text, match, kFactor)) return std::nullopt;
  return std::stod(match[1]);
}

bool notes_say_balanced_routing(std::string_view notes) {
  return notes_say_dropped_tokens(notes) || notes_say_balanced_gate(notes) ||
         affirms_any(notes, {"balanced router=true", "force-balanced", "force balanced",
                             "balanced)", "forced balanc", "force balanc", "force-load-balanc",
                             "force load balanc", "force_load_balanc", "forced load balanc"});
}

bool notes_say_no_fused_attention(std::string_view notes) {
  return affirms_any(notes, {"unfused attention", "eager attention"}) ||
         denies_any(notes, {"flash", "fused attention"});
}

bool notes_say_fused_attention(std::string_view notes) {
  return affirms_any(notes, {"flash attention", "flashattention", "flash-attention", "flash-attn",
                             "flash_attn", "flash_attention"}) &&
         !notes_say_no_fused_attention(notes);
}

std::optional<ContextParallelKind> context_parallel_in(std::string_view text) {
  if (affirms_any(text, {"ulysses", "cp_comm_type=a2a", "cp_comm_type a2a", "cp-comm-type a2a",
                         "cp_comm_type: a2a"}))
    return ContextParallelKind::Ulysses;
  if (affirms_any(text, {"ring attention", "ring-attention", "ringattention", "ring cp",
                         "cp_comm_type=p2p", "cp_comm_type p2p", "cp-comm-type p2p"}))
    return ContextParallelKind::Ring;
  if (affirms_any(text, {"all-gather based cp", "all-gather based context", "all-gather cp",
                         "cp by all-gather", "cp_comm_type=all_gather", "cp_comm_type all_gather"}))
    return ContextParallelKind::AllGather;
  return std::nullopt;
}

bool notes_say_latent_attention(std::string_view notes) {
  return affirms_any(notes, {"mla"});
}

bool notes_say_parallel_block(const std::string& notes) {
  // "Tensor-parallel transformer blocks" are something else.
  static const std::regex kParallel(
      R"((?:^|[;:,.(+&]|\b(?!tensor|model|sequence|context|data|pipeline|expert|fully|no\b|not\b|without)[a-z]+) ?)"
      R"(parallel (?:(?:transformer|residual) blocks?\b)"
      R"(|(?:self-?)?att(?:ention|n)(?: layers?)? ?(?:/|and|&|\+) ?(?:the )?(?:mlp|ffn|feed-?forward)))",
      std::regex::icase);
  return !affirmed_match(notes, kParallel).empty();
}

bool notes_say_distributed_optimizer(std::string_view notes) {
  return affirms_any(notes, {"distributed optimizer", "distributed-optimizer"});
}

bool notes_say_interleaved(std::string_view notes) {
  return affirms_any(notes, {"interleav"});
}

bool notes_say_no_tensor_overlap(std::string_view notes) {
  return says(notes, "no tp/") ||
         denies_any(notes, {"tp overlap", "tp comm overlap", "tp communication overlap"});
}

bool notes_say_expert_overlap(std::string_view notes) {
  return affirms_any(notes, {"ep-comm overlap=true", "ep overlap", "moe a2a overlap",
                             "ep all-to-all overlap on", "1f1b overlap"}) &&
         !denies_any(notes, {"ep-comm overlap"});
}

bool notes_say_no_expert_overlap(std::string_view notes) {
  return denies_any(notes, {"ep-comm overlap", "ep overlap", "moe a2a overlap",
                            "ep all-to-all overlap", "1f1b overlap"});
}

bool notes_say_tokens_once_per_node(std::string_view notes) {
  return affirms_any(notes, {"deepep", "hybridep"});
}

bool notes_say_no_further_tokens(std::string_view notes) {
  return denies_any(notes, {"mtp"});
}

bool notes_say_cuda_graphs(std::string_view notes) {
  return affirms_any(notes, {"scope full_iteration", "cuda graphs full_iteration"});
}

bool notes_say_partial_graphs(std::string_view notes) {
  return affirms_any(notes, {"graphs transformer_engine scope", "graph transformer_engine scope",
                             "te-scoped cuda graphs", "te cuda graphs", "partial cg"});
}

bool notes_say_not_compiled(std::string_view notes) {
  const std::string text = without_other_compilations(notes);
  return denies_any(text, {"compile", "torch.compile"}) ||
         (affirms_any(text, {"eager mode"}) && !affirms_any(text, {"compile", "torch.compile"}));
}

bool notes_say_compiled(std::string_view notes) {
  return affirms_any(without_other_compilations(notes), {"compile", "torch.compile", "inductor"}) ||
         notes_say_asynchronous_tensor_parallel(notes);
}

bool notes_say_asynchronous_tensor_parallel(std::string_view notes) {
  return affirms_any(
      notes, {"async tp", "async-tp", "async_tp", "asynctp", "async tensor",
              "async (micro-pipelined) tp", "asynchronous tp", "asynchronous tensor parallel",
              "enable_async_tensor_parallel", "micro-pipelined tp", "micro_pipeline_tp"});
}

std::optional<std::int64_t> expert_tensor_parallel_in(std::string_view notes) {
  constexpr std::string_view kKey = "ETP";
  if (denies_any(notes, {kKey})) return std::nullopt;
  for (auto place = notes.find(kKey); place != std::string_view::npos;
       place = notes.find(kKey, place + 1)) {
    const bool in_word = place > 0 && is_letter_or_digit(notes[place - 1]);
    if (!in_word) return last_degree_of(notes.substr(place + kKey.size()));
  }
  return std::nullopt;
}

bool notes_say_experts_as_attention(std::string_view notes) {
  return affirms_any(notes, {"experts use the same TP as attention", "ETP=TP", "without folding"});
}

bool notes_say_fp8_weights(std::string_view notes) {
  return affirms_any(
      notes, {"fp8 params", "fp8 weights", "fp8_param_gather", "mxfp8 params", "mxfp8 weights"});
}

bool says_low_rank_adapters(std::string_view text) {
  // The widths of latent attention have the same name.
  return affirms_any(text, {"lora", "qlora", "dora", "peft", "low-rank adapt", "low rank adapt"}) &&
         !says_any(text, {"q_lora", "kv_lora"});
}

OffloadNote activation_offload_in(std::string_view notes) {
  static const std::regex kActivations(R"(activation)", std::regex::icase);
  if (const std::string list = offloaded_list_with(notes, kActivations); !list.empty())
    return offload_in(notes, {list});
  return offload_in(without_offloaded_lists(notes),
                    {"activation offload", "activation cpu offload", "activations offload",
                     "activations are offload", "activations were offload", "offload activations",
                     "offloaded activations", "offloading activations", "offload of activations"});
}

// Trainers that offload say no more than that, of the states at the least.
OffloadNote optimizer_offload_in(std::string_view notes) {
  static const std::regex kActivations(R"(\bactivations? (?:\w{1,20} ){0,2}offload\w{0,6})",
                                       std::regex::icase);
  static const std::regex kOptimizer(R"(optimi[sz]er)", std::regex::icase);
  if (const std::string list = offloaded_list_with(notes, kOptimizer); !list.empty())
    return offload_in(notes, {list});
  return offload_in(std::regex_replace(without_offloaded_lists(notes), kActivations, ""),
                    {"optimizer offload",
                     "optimizer cpu offload",
                     "optimizer state offload",
                     "optimizer states offload",
                     "optimizer states are offload",
                     "optimizer states were offload",
                     "offload optimizer",
                     "offload_optimizer",
                     "offloaded optimizer",
                     "offload of parameters and optimizer",
                     "offload of optimizer",
                     "offload of the optimizer",
                     "offload_params=true",
                     "cpu offload",
                     "cpu-offload",
                     "cpu_offload",
                     "cpuoffload",
                     "zero-offload",
                     "zero offload",
                     "zero-2 offload",
                     "zero-3 offload",
                     "zero-3 + offload",
                     "offload: optimizer",
                     "offloading optimizer",
                     "nvme offload",
                     "cpu adam",
                     "cpu-adam",
                     "cpu_adam",
                     "cpuadam",
                     "deepspeedcpuadam",
                     "zero-infinity"});
}

bool notes_say_parameters_offloaded(std::string_view notes) {
  static const std::regex kParameters(R"(param|weights)", std::regex::icase);
  if (!offloaded_list_with(notes, kParameters).empty()) return true;
  return affirms_any(
      without_offloaded_lists(notes),
      {"offload_param", "parameter offload", "parameters offload", "param offload",
       "params offload", "offload of parameters", "weights offload", "weights are offload",
       "offload of optimizer and parameters", "offload parameters", "parameters are offload",
       "parameters on the host", "zero-infinity"});
}

bool notes_say_states_on_disk(std::string_view notes) {
  return affirms_any(notes, {"nvme", "zero-infinity"});
}

}  // namespace shardwright::sim
