#include "sim/validation/row_stack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/spec/profile_library.hpp"
#include "sim/validation/accelerator_text.hpp"
#include "sim/validation/framework_family.hpp"
#include "sim/validation/noted_attention.hpp"
#include "sim/validation/row_notes.hpp"
#include "sim/validation/row_words.hpp"
#include "sim/validation/software_generation.hpp"
#include "sim/validation/stack_name.hpp"

namespace shardwright::sim {
namespace {

// FlashAttention 1 against 2 on an A100, forward and backward: 85 to 124 against 165 to 203 TFLOP/s
// at sequences of 2,048 tokens with a causal mask (FlashAttention-2, arXiv 2307.08691, figure 4).
constexpr double kFlashAttention1Ratio = 0.6;

void set_attention_kernel(StackSpec& stack, const std::string& kernel) {
  if (kernel.empty()) return;
  stack.fusion.flash_attention = says(kernel, "flash");
  if (says(kernel, "attentionv1")) {
    stack.fusion.attention_kernel_ratio = kFlashAttention1Ratio;
    stack.fusion.hopper_attention_kernel_ratio *= kFlashAttention1Ratio;
  }
  stack.fusion.softmax = kernel != "torch";
  stack.fusion.norm = says(kernel, "rms");
}

std::string generic_text(const TrainingRow& row, const std::string& profile,
                         const std::optional<std::string_view>& family) {
  if (row.stack.empty()) return fmt::format("stack: {}, the source names none", profile);
  if (!family) return fmt::format("stack: {} for \"{}\", which is not known", profile, row.stack);
  return fmt::format("stack: {} for \"{}\", which has no profile of its own", profile, row.stack);
}

// The name of the profile, and in `filled_in` how it was come by where the row does not name it.
std::string profile_of(const TrainingRow& row, std::vector<std::string>& filled_in) {
  const std::string named = without_denied_frameworks(row.stack);
  std::string own = own_profile(named);
  const std::optional<std::string_view> family = framework_family(named);
  const bool sharded = row.plan.zero_stage == 3;
  const std::string fallback(family ? *family : sharded ? "pytorch" : "");
  std::string whole = find_stack(named, fallback);
  std::string of_year = nemo_generation(row);
  if (of_year.empty() && own.empty() && whole == "generic-megatron")
    of_year = megatron_generation(row);
  if (!of_year.empty() && of_year != own) {
    filled_in.push_back(fmt::format("stack: {} for \"{}\" of {}", of_year, row.stack,
                                    row.source_year ? "the source's year" : "such accelerators"));
    return of_year;
  }
  if (own.empty()) {
    filled_in.push_back(generic_text(row, whole, family));
    return whole;
  }
  if (own != whole) filled_in.push_back(fmt::format("stack: {} for \"{}\"", own, row.stack));
  return own;
}

// What the source says about attention, or what its year does where nothing else is known.
void set_attention_by_notes(const TrainingRow& row, StackSpec& stack,
                            std::vector<std::string>& filled_in) {
  // Long sequences that are spread over ranks leave no room for matrices of scores, and a ring adds
  // blocks up as fused kernels do.
  const std::string text = row.stack + "; " + row.notes;
  const bool by_formula =
      notes_say_no_fused_attention(row.notes) || says_attention_by_formula(text);
  const bool spread = context_parallel_in(text).has_value() && !by_formula;
  const bool fused = (notes_say_fused_attention(row.notes) && !by_formula) || spread;
  const bool said = fused || by_formula;
  const bool by_year = is_generic(stack.name) && is_before_fused_attention(row);
  if (!row.attention_kernel.empty() || (!said && !by_year) || stack.fusion.flash_attention == fused)
    return;
  stack.fusion.flash_attention = fused;
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
  const bool hopper = says_any(accelerator_name(row.cluster.gpu), {"h100", "h200"});
  const bool balanced =
      notes_say_balanced_routing(row.notes) && !notes_say_dropped_tokens(row.notes);
  if (!recipe || !hopper || !balanced || stack.communication.sends_tokens_once_per_node) return;
  stack.communication.sends_tokens_once_per_node = true;
  filled_in.emplace_back("token exchange: once per node, as in the recipes of such models");
}

void set_graphs(const TrainingRow& row, StackSpec& stack, std::vector<std::string>& filled_in) {
  const bool submission = stack.name == "nemo-te" && row.source_title.starts_with("MLPerf");
  if (submission || notes_say_cuda_graphs(row.notes)) {
    // The host of a graph does not know how many tokens an expert has; one kernel reads it.
    stack.host.cuda_graphs = stack.fusion.grouped_gemm = stack.fusion.expert_bias = true;
    filled_in.emplace_back(
        submission ? "host: CUDA graphs, as the submissions' config_common_cg.sh has them"
                   : "host: a CUDA graph of the whole step, by the notes");
  } else if (notes_say_partial_graphs(row.notes)) {
    stack.host.graphs_to_dispatch = true;
    filled_in.emplace_back("host: CUDA graphs of attention and routers, by the notes");
  }
}

// Notes that deny it hold before a name that has it.
bool is_not_compiled(const TrainingRow& row) {
  return notes_say_not_compiled(row.notes) || notes_say_not_compiled(row.stack);
}

bool is_compiled(const TrainingRow& row) {
  return !is_not_compiled(row) && (notes_say_compiled(row.notes) || notes_say_compiled(row.stack));
}

// The profile that was compiled or was not, where a source that names the trainer says so beside.
void set_compiled(const TrainingRow& row, std::string& name, std::vector<std::string>& filled_in) {
  constexpr std::string_view kCompiled = "-compile";
  const bool compiled = name.ends_with(kCompiled);
  if (compiled && is_not_compiled(row)) {
    name.resize(name.size() - kCompiled.size());
    filled_in.push_back(fmt::format("stack: {}, not compiled as the notes say", name));
    return;
  }
  const std::vector<std::string> shipped = shipped_stacks();
  const std::string with = name + std::string(kCompiled);
  const bool exists = std::find(shipped.begin(), shipped.end(), with) != shipped.end();
  if (compiled || !exists || !is_compiled(row)) return;
  name = with;
  filled_in.push_back(fmt::format("stack: {}, compiled as the source says", name));
}

// Software without a profile of its own: what Inductor fuses in any trainer.
void set_compiled_kernels(const TrainingRow& row, StackSpec& stack,
                          std::vector<std::string>& filled_in) {
  if (stack.name != "generic-pytorch" || !is_compiled(row)) return;
  stack.fusion.norm = stack.fusion.rope = stack.fusion.activation = stack.fusion.dropout_add = true;
  filled_in.emplace_back("kernels: norm, RoPE and activation fused, compiled as the source says");
}

}  // namespace

StackSpec stack_of_row(const TrainingRow& row, std::vector<std::string>& filled_in) {
  std::string name = profile_of(row, filled_in);
  set_compiled(row, name, filled_in);
  // The name has stood for two generations of the software.
  if (name == "megatron-deepspeed" && software_year(row) >= 2023) {
    name += "-23";
    filled_in.push_back(fmt::format("stack: {}, by the year of the source", name));
  }
  StackSpec stack = load_stack(name);
  set_compiled_kernels(row, stack, filled_in);
  set_attention_kernel(stack, row.attention_kernel);
  set_attention_by_notes(row, stack, filled_in);
  set_graphs(row, stack, filled_in);
  if (notes_say_dropped_tokens(row.notes)) stack.host.reads_token_counts = false;
  if (notes_say_tokens_once_per_node(row.notes)) {
    stack.communication.sends_tokens_once_per_node = true;
    if (row.model.moe) filled_in.emplace_back("token exchange: once per node, by the notes");
  }
  // DeepSpeed keeps fp16 gradients as they are; its BF16_Optimizer adds bf16 ones up in fp32.
  if (says(stack.name, "deepspeed") && precision_in(row.plan.precision) == Precision::Bf16)
    stack.gradients.fp32_accumulation = true;
  return stack;
}

void refine_stack(const TrainingRow& row, const ModelSpec& model, StackSpec& stack,
                  std::vector<std::string>& filled_in) {
  if (const std::string window = attention_window_in(row.stack + "; " + row.notes);
      !window.empty() && model.attention.sliding_window == 0)
    filled_in.push_back(
        fmt::format("attention: \"{}\" is not simulated, but full attention", window));
  if (stack.name == "fsdp2-compile" && row.source_year.value_or(0) >= kCompiledLossYear) {
    stack.fusion.loss = true;
    filled_in.emplace_back("loss: compiled, by the year of the source");
  }
  if (stack.name == "nemo-te" && model.attention.kind == AttentionKind::MultiHeadLatent) {
    stack.memory.optimizer_state_bytes = kHalfMoments;
    filled_in.emplace_back("optimizer: moments in bf16, as in the recipes of such models");
  }
  exchange_by_recipe(row, model, stack, filled_in);
  // Where matrix units read FP8 operands of any layout, no transposed copy is needed.
  const bool any_layout = says_any(accelerator_name(row.cluster.gpu), {"b200", "b300"});
  if (any_layout && notes_say_fp8_weights(row.notes)) {
    stack.memory.fp8_weight_bytes = Bytes(1.0);
    filled_in.emplace_back("weights: in fp8, by the notes");
  }
}

bool has_own_profile(const TrainingRow& row) {
  return !own_profile(without_denied_frameworks(row.stack)).empty();
}

}  // namespace shardwright::sim
