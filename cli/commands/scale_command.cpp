// shardwright scale
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/command.hpp"
#include "cli/commands/scale_run.hpp"
#include "cli/options/request_options.hpp"
#include "cli/output/output_file.hpp"

namespace shardwright::cli {
namespace {

struct ScaleOptions {
  CommonOptions common;
  RequestOptions request;
};

ExitCode scale(const ScaleOptions& options) {
  check_destination("--json", options.common.json, options.common.force);
  ChosenRequest chosen = choose_request(options.request, "shardwright scale");
  return run_scale(options.common, chosen, "");
}

}  // namespace

void add_scale_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "scale", "Find the best plan for each number of GPUs, and how far training scales");
  command->footer(R"(Example:
  shardwright scale --model llama3-8b --cluster dgx-h100 --gpus 8..1024 --global-batch 1024 --seq-len 8192)");
  const auto options = std::make_shared<ScaleOptions>();
  add_request_options(*command, options->request);
  add_common_options(*command, options->common);
  command->callback([options, &action] { action = [options] { return scale(*options); }; });
}

}  // namespace shardwright::cli
