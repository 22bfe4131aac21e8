// shardwright models list | show
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands/command.hpp"
#include "cli/output/output_file.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/model_json.hpp"
#include "core/spec/model_library.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;

struct ModelsOptions {
  CommonOptions common;
  std::string name;
};

ordered_json parameters_json(const ParameterCount& count) {
  return {{"total", count.total},
          {"active", count.active},
          {"mtp", count.mtp},
          {"checkpoint", count.checkpoint}};
}

ordered_json model_json(const ModelSpec& model) {
  ordered_json document = to_json(model);
  document["parameters"] = parameters_json(count_parameters(model));
  return document;
}

std::vector<std::string> list_row(const ModelSpec& model) {
  const ParameterCount count = count_parameters(model);
  const AttentionSpec& attention = model.attention;
  return {
      model.name,
      format_parameters(count.total),
      count.active == count.total ? "" : format_parameters(count.active),
      format_count(model.layers),
      format_count(model.hidden),
      format_count(attention.heads),
      attention.kind == AttentionKind::MultiHeadLatent ? "MLA" : format_count(attention.kv_heads),
      model.moe ? format_count(model.moe->experts) : "",
      format_count(model.vocab),
      format_count(model.max_seq_len)};
}

ExitCode list_models(const ModelsOptions& options) {
  check_destination("--json", options.common.json, options.common.force);
  Table table({{"model"},
               {"parameters", kNumber},
               {"active", kNumber},
               {"layers", kNumber},
               {"hidden", kNumber},
               {"heads", kNumber},
               {"KV heads", kNumber},
               {"experts", kNumber},
               {"vocabulary", kNumber},
               {"context", kNumber, "tokens"}});
  ordered_json document = new_document("models");
  document["models"] = ordered_json::array();
  for (const ModelSpec& model : shipped_model_specs()) {
    table.add_row(list_row(model));
    document["models"].push_back(model_json(model));
  }
  Page page = new_page(options.common);
  page.table(table);
  deliver(options.common, page, document);
  return ExitCode::Ok;
}

std::string attention_text(const AttentionSpec& attention) {
  if (attention.kind == AttentionKind::MultiHeadLatent) {
    return "multi-head latent, " + format_plural(attention.heads, "head") + ", KV rank " +
           format_count(attention.kv_lora_rank);
  }
  return format_plural(attention.heads, "head") + " of " + format_count(attention.head_dim) + ", " +
         format_plural(attention.kv_heads, "KV head") +
         (attention.sliding_window > 0
              ? ", sliding window of " + format_count(attention.sliding_window) + " tokens"
              : "");
}

std::string linear_attention_text(const ModelSpec& model) {
  const LinearAttentionSpec& linear = *model.linear_attention;
  std::int64_t layers = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    layers += model.parts_of(layer).mixer == LayerMixer::LinearAttention ? 1 : 0;
  return fmt::format("{}, {} of {}, {} of {}, in {} of {}", name_of(linear.kind),
                     format_plural(linear.heads, "head"), linear.head_dim,
                     format_plural(linear.key_heads, "key head"), linear.state_dim, layers,
                     format_plural(model.layers, "layer"));
}

std::string experts_text(const MoeSpec& moe) {
  std::string text = format_count(moe.experts) + " of width " + format_count(moe.expert_ffn) +
                     ", " + format_count(moe.top_k) + " per token";
  if (moe.shared_experts > 0) text += ", " + format_count(moe.shared_experts) + " shared";
  if (moe.first_dense_layers > 0)
    text += ", first " + format_plural(moe.first_dense_layers, "layer") + " dense";
  return text;
}

std::string parameters_text(const ParameterCount& count) {
  std::string text = format_count(count.total);
  if (count.active != count.total) text += ", " + format_count(count.active) + " active per token";
  if (count.mtp > 0) text += ", " + format_count(count.mtp) + " more for multi-token prediction";
  if (count.checkpoint != count.total)
    text += "; the checkpoint stores " + format_count(count.checkpoint);
  return text;
}

using Facts = std::vector<std::pair<std::string, std::string>>;

Facts model_facts(const ModelSpec& model) {
  Facts facts = {
      {"parameters", parameters_text(count_parameters(model))},
      {"layers", format_count(model.layers)},
      {"hidden", format_count(model.hidden)},
      {"attention", attention_text(model.attention)},
      {"feed-forward", format_count(model.mlp.ffn_hidden) + ", " +
                           (model.mlp.gated ? "gated " : "") + name_of(model.mlp.activation)}};
  if (model.linear_attention) facts.push_back({"linear attention", linear_attention_text(model)});
  if (!model.layer_pattern.empty()) facts.push_back({"layer pattern", model.layer_pattern});
  if (model.moe) facts.push_back({"experts", experts_text(*model.moe)});
  facts.push_back({"norm", name_of(model.norm)});
  facts.push_back({"positions", name_of(model.position)});
  facts.push_back({"vocabulary", format_count(model.vocab) +
                                     (model.tied_embeddings ? ", embedding and head tied" : "")});
  facts.push_back({"context", format_count(model.max_seq_len) + " tokens"});
  for (const std::string& part : model.not_simulated) facts.push_back({"not simulated", part});
  if (!model.source.empty()) facts.push_back({"source", model.source});
  return facts;
}

ExitCode show_model(const ModelsOptions& options) {
  check_destination("--json", options.common.json, options.common.force);
  const ModelSpec model = load_model(options.name);
  Page page = new_page(options.common);
  page.heading(model.name);
  page.facts(model_facts(model));
  deliver(options.common, page, model_json(model));
  return ExitCode::Ok;
}

}  // namespace

void add_models_command(CLI::App& app, Action& action) {
  CLI::App* models = app.add_subcommand("models", "List the shipped models, or show any model");
  models->require_subcommand(1);
  models->footer(R"(Examples:
  shardwright models list
  shardwright models show llama3-70b
  shardwright models show meta-llama/Llama-3.1-8B
  shardwright models show ~/models/my-model/config.json)");
  const auto options = std::make_shared<ModelsOptions>();

  CLI::App* list = models->add_subcommand("list", "List all shipped models with their sizes");
  list->footer("Example:\n  shardwright models list --json -");
  add_common_options(*list, options->common);
  list->callback([options, &action] { action = [options] { return list_models(*options); }; });

  CLI::App* show = models->add_subcommand("show", "Show a model with its parameter counts");
  add_option(*show, "model", options->name, "NAME|FILE|FOLDER",
             "A shipped name, a JSON file (ours or a Hugging Face config.json), a folder "
             "with a config.json, or - for standard input")
      ->required();
  show->footer(R"(Examples:
  shardwright models show llama3-70b
  shardwright models show ~/models/my-model/config.json --json -)");
  add_common_options(*show, options->common);
  show->callback([options, &action] { action = [options] { return show_model(*options); }; });
}

}  // namespace shardwright::cli
