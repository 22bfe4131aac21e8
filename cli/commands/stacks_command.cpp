// shardwright stacks list | show
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands/command.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/spec_table.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/stack_json.hpp"

namespace shardwright::cli {
namespace {

struct StacksOptions {
  CommonOptions common;
  std::string name;
};

// The kinds of communication that the stack overlaps with compute.
std::string overlaps(const StackSpec& stack) {
  const std::vector<std::pair<bool, std::string>> kinds = {
      {stack.overlap.grad_reduce, "gradients"},   {stack.overlap.param_gather, "parameters"},
      {stack.overlap.tensor_parallel, "tensor"},  {stack.overlap.p2p, "pipeline"},
      {stack.overlap.expert_parallel, "experts"},
  };
  std::vector<std::string> names;
  for (const auto& [able, name] : kinds) {
    if (able) names.push_back(name);
  }
  return names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", "));
}

ExitCode list_stacks(const StacksOptions& options) {
  check_destination("--json", options.common.json, options.common.force);
  Table table({{"stack"},
               {"family"},
               {"attention"},
               {"overlaps", ColumnKind::Prose},
               {"gradients"},
               {"launch", ColumnKind::Number, "µs/op"}});
  nlohmann::ordered_json document = new_document("stacks");
  document["stacks"] = nlohmann::ordered_json::array();
  for (const StackSpec& stack : shipped_stack_specs()) {
    table.add_row(
        {stack.name, stack.family, stack.fusion.flash_attention ? "fused" : "unfused",
         overlaps(stack), stack.gradients.fp32_reduction ? "fp32" : "16-bit",
         stack.host.cuda_graphs ? "graphs" : format_number(stack.host.launch_time.value() * 1e6)});
    document["stacks"].push_back(to_json(stack));
  }
  Page page = new_page(options.common);
  page.table(table);
  deliver(options.common, page, document);
  return ExitCode::Ok;
}

ExitCode show_stack(const StacksOptions& options) {
  check_destination("--json", options.common.json, options.common.force);
  const nlohmann::ordered_json document = to_json(load_stack(options.name));
  Page page = new_page(options.common);
  add_spec(page, document);
  deliver(options.common, page, document);
  return ExitCode::Ok;
}

}  // namespace

void add_stacks_command(CLI::App& app, Action& action) {
  CLI::App* stacks =
      app.add_subcommand("stacks", "List the shipped software stacks, or show any stack");
  stacks->require_subcommand(1);
  stacks->footer(R"(Examples:
  shardwright stacks list
  shardwright stacks show megatron-core
  shardwright stacks show my-stack.json)");
  const auto options = std::make_shared<StacksOptions>();

  CLI::App* list =
      stacks->add_subcommand("list", "List all shipped stacks with what they fuse and overlap");
  list->footer("Example:\n  shardwright stacks list --json -");
  add_common_options(*list, options->common);
  list->callback([options, &action] { action = [options] { return list_stacks(*options); }; });

  CLI::App* show = stacks->add_subcommand(
      "show", "Show every property of a stack with its source and confidence");
  add_option(*show, "stack", options->name, "NAME|FILE", "A shipped stack or a JSON file")
      ->required();
  show->footer(R"(Examples:
  shardwright stacks show megatron-core
  shardwright stacks show my-stack.json --json -)");
  add_common_options(*show, options->common);
  show->callback([options, &action] { action = [options] { return show_stack(*options); }; });
}

}  // namespace shardwright::cli
