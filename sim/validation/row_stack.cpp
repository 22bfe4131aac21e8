#include "sim/validation/row_stack.hpp"

#include <fmt/format.h>

#include <cctype>
#include <optional>

#include "core/spec/profile_library.hpp"
#include "sim/validation/framework_family.hpp"
#include "sim/validation/row_notes.hpp"
#include "sim/validation/row_words.hpp"
#include "sim/validation/software_generation.hpp"

namespace shardwright::sim {
namespace {

// FlashAttention 1 against 2 on an A100, forward and backward: 85 to 124 against 165 to 203 TFLOP/s
// at sequences of 2,048 tokens with a causal mask (FlashAttention-2, arXiv 2307.08691, figure 4).
constexpr double kFlashAttention1Ratio = 0.6;

void set_attention_kernel(StackSpec& stack, const std::string& kernel) {
  if (kernel.empty()) return;
  stack.flash_attention = says(kernel, "flash");
  if (says(kernel, "attentionv1")) {
    stack.attention_kernel_ratio = kFlashAttention1Ratio;
    stack.hopper_attention_kernel_ratio *= kFlashAttention1Ratio;
  }
  stack.fused_softmax = kernel != "torch";
  stack.fused_norm = says(kernel, "rms");
}

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

// "0.5.1", "v2", "24.07"; a year names a generation of the software, not a release.
bool is_version(const std::string& word) {
  const std::string number = word.starts_with('v') || word.starts_with('V') ? word.substr(1) : word;
  if (number.empty() || !is_digit(number.front())) return false;
  constexpr std::size_t kYearDigits = 4;
  return number.size() != kYearDigits || number.find('.') != std::string::npos;
}

// "NeMo 24.07" without its release: "NeMo".
std::string without_version(const std::string& spelling) {
  const auto blank = spelling.find_last_of(" -_");
  if (blank == std::string::npos || !is_version(spelling.substr(blank + 1))) return spelling;
  return spelling.substr(0, blank);
}

std::string generic_text(const TrainingRow& row, const std::string& profile,
                         const std::optional<std::string_view>& family) {
  if (row.stack.empty()) return fmt::format("stack: {}, the source names none", profile);
  if (!family) return fmt::format("stack: {} for \"{}\", which is not known", profile, row.stack);
  return fmt::format("stack: {} for \"{}\", which has no profile of its own", profile, row.stack);
}

// The name of the profile, and in `filled_in` how it was come by where the row does not name it.
std::string profile_of(const TrainingRow& row, std::vector<std::string>& filled_in) {
  std::optional<std::string_view> family = framework_family(row.stack);
  const bool sharded = row.plan.zero_stage == 3;
  const std::string fallback(family ? *family : sharded ? "pytorch" : "");
  std::string name = find_stack(row.stack, fallback);
  if (!is_generic(name)) return name;
  const std::string plain = without_version(row.stack);
  if (std::string known = find_stack(plain, fallback); !is_generic(known)) {
    filled_in.push_back(fmt::format("stack: {} for \"{}\"", known, row.stack));
    return known;
  }
  if (std::string of_year = name == "generic-megatron" ? megatron_generation(row) : "";
      !of_year.empty()) {
    filled_in.push_back(fmt::format("stack: {} for \"{}\" of {}", of_year, row.stack,
                                    row.source_year ? "the source's year" : "such accelerators"));
    return of_year;
  }
  filled_in.push_back(generic_text(row, name, family));
  return name;
}

// What the source says about attention, or what its year does where nothing else is known.
void set_attention_by_notes(const TrainingRow& row, StackSpec& stack,
                            std::vector<std::string>& filled_in) {
  const bool fused = notes_say_fused_attention(row.notes);
  const bool said = fused || notes_say_no_fused_attention(row.notes);
  const bool by_year = is_generic(stack.name) && is_before_fused_attention(row);
  if (!row.attention_kernel.empty() || (!said && !by_year) || stack.flash_attention == fused)
    return;
  stack.flash_attention = fused;
  filled_in.push_back(fmt::format("attention: {}, by the {}", fused ? "fused" : "not fused",
                                  said ? "notes" : "year of the source"));
}

// torchtitan compiles its loss since 2025 (build_cross_entropy_loss,
// torchtitan/components/loss.py).
constexpr std::int64_t kCompiledLossYear = 2025;
// Moments of the optimizer in bf16, as Megatron Bridge's recipes of models with latent attention
// have them (precision-aware optimizer; src/megatron/bridge/recipes/deepseek, …/moonlight).
constexpr Bytes kHalfMoments(4.0);

// Recipes of models with latent attention that force balanced routing exchange tokens by DeepEP on
// Hopper (Megatron Bridge, scripts/performance/configs/deepseek: the one is set only together with
// the other).
void exchange_by_recipe(const TrainingRow& row, const ModelSpec& model, StackSpec& stack,
                        std::vector<std::string>& filled_in) {
  const bool recipe = stack.name == "nemo-te" && model.moe &&
                      model.attention.kind == AttentionKind::MultiHeadLatent;
  const bool hopper = says(row.cluster.gpu, "h100") || says(row.cluster.gpu, "h200");
  const bool balanced =
      notes_say_balanced_routing(row.notes) && !notes_say_dropped_tokens(row.notes);
  if (!recipe || !hopper || !balanced || stack.sends_tokens_once_per_node) return;
  stack.sends_tokens_once_per_node = true;
  filled_in.emplace_back("token exchange: once per node, as in the recipes of such models");
}

void set_graphs(const TrainingRow& row, StackSpec& stack, std::vector<std::string>& filled_in) {
  const bool submission = stack.name == "nemo-te" && row.source_title.starts_with("MLPerf");
  if (submission || notes_say_cuda_graphs(row.notes)) {
    // The host of a graph does not know how many tokens an expert has; one kernel reads it.
    stack.cuda_graphs = stack.fused_grouped_gemm = stack.fused_expert_bias = true;
    filled_in.emplace_back(
        submission ? "host: CUDA graphs, as the submissions' config_common_cg.sh has them"
                   : "host: a CUDA graph of the whole step, by the notes");
  } else if (notes_say_partial_graphs(row.notes)) {
    stack.graphs_to_dispatch = true;
    filled_in.emplace_back("host: CUDA graphs of attention and routers, by the notes");
  }
}

}  // namespace

StackSpec stack_of_row(const TrainingRow& row, std::vector<std::string>& filled_in) {
  std::string name = profile_of(row, filled_in);
  constexpr std::string_view kCompiled = "-compile";
  if (notes_say_not_compiled(row.notes) && name.ends_with(kCompiled)) {
    name.resize(name.size() - kCompiled.size());
    filled_in.push_back(fmt::format("stack: {}, not compiled as the notes say", name));
  }
  // The name has stood for two generations of the software.
  if (name == "megatron-deepspeed" && software_year(row) >= 2023) {
    name += "-23";
    filled_in.push_back(fmt::format("stack: {}, by the year of the source", name));
  }
  StackSpec stack = load_stack(name);
  set_attention_kernel(stack, row.attention_kernel);
  set_attention_by_notes(row, stack, filled_in);
  set_graphs(row, stack, filled_in);
  if (notes_say_dropped_tokens(row.notes)) stack.reads_token_counts = false;
  if (notes_say_tokens_once_per_node(row.notes)) {
    stack.sends_tokens_once_per_node = true;
    if (row.model.moe) filled_in.emplace_back("token exchange: once per node, by the notes");
  }
  // DeepSpeed keeps fp16 gradients as they are; its BF16_Optimizer adds bf16 ones up in fp32.
  if (says(stack.name, "deepspeed") && precision_in(row.plan.precision) == Precision::Bf16)
    stack.fp32_main_gradients = true;
  return stack;
}

void refine_stack(const TrainingRow& row, const ModelSpec& model, StackSpec& stack,
                  std::vector<std::string>& filled_in) {
  if (stack.name == "fsdp2-compile" && row.source_year.value_or(0) >= kCompiledLossYear) {
    stack.fused_loss = true;
    filled_in.emplace_back("loss: compiled, by the year of the source");
  }
  if (stack.name == "nemo-te" && model.attention.kind == AttentionKind::MultiHeadLatent) {
    stack.optimizer_state_bytes = kHalfMoments;
    filled_in.emplace_back("optimizer: moments in bf16, as in the recipes of such models");
  }
  exchange_by_recipe(row, model, stack, filled_in);
  // Where matrix units read FP8 operands of any layout, no transposed copy is needed.
  const bool any_layout = says(row.cluster.gpu, "b200") || says(row.cluster.gpu, "b300");
  if (any_layout && notes_say_fp8_weights(row.notes)) {
    stack.fp8_weight_bytes = Bytes(1.0);
    filled_in.emplace_back("weights: in fp8, by the notes");
  }
}

bool is_generic(const std::string& profile) {
  return profile.starts_with("generic");
}

bool has_own_profile(const TrainingRow& row) {
  return !is_generic(find_stack(row.stack)) || !is_generic(find_stack(without_version(row.stack)));
}

}  // namespace shardwright::sim
