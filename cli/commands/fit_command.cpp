// shardwright fit
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "calibration/profile_fit.hpp"
#include "cli/commands/command.hpp"
#include "cli/commands/interrupt.hpp"
#include "cli/options/common_options.hpp"
#include "cli/output/calibration_report.hpp"
#include "cli/output/exit_code.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/progress.hpp"
#include "cli/programs/here_profile.hpp"
#include "core/base/data_directory.hpp"
#include "core/base/error.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/profile_library.hpp"
#include "validation/timing_report.hpp"
#include "validation/training_fit.hpp"

namespace shardwright::cli {

namespace {

struct TrainingFitRequest {
  std::vector<std::string> files;
  // The grades of the rows to use.
  std::string grades;
  // Folder for the changed profiles; empty: none are written.
  std::string out;
};

using nlohmann::ordered_json;

constexpr const char* kSource = "training-fit";

validation::FitRows rows_of(const TrainingFitRequest& request) {
  std::vector<validation::Measurement> rows;
  for (validation::Measurement& row : validation::read_measurements(request.files)) {
    if (!row.grade.empty() && request.grades.find(row.grade) != std::string::npos)
      rows.push_back(std::move(row));
  }
  return validation::rows_to_fit(rows);
}

// Returns the files of the figure's profile, or of all profiles of its kind.
std::vector<std::filesystem::path> profile_files(const validation::TrainingParameter& parameter) {
  const std::filesystem::path folder =
      parameter.kind == validation::ProfileKind::Stack ? "stacks" : "accelerators";
  if (parameter.kind != validation::ProfileKind::AllAccelerators)
    return {folder / (parameter.profile + ".json")};
  std::vector<std::filesystem::path> files;
  for (const std::string& name : shipped_accelerators()) files.push_back(folder / (name + ".json"));
  return files;
}

// Accelerators without rows get the figure of the others, which is an assumption.
void put_figure(const validation::FittedFigure& figure, ordered_json& profile) {
  const bool measured = figure.parameter.profiles.contains(profile.at("name").get<std::string>());
  profile[ordered_json::json_pointer("/" + figure.parameter.key)] = {
      {"value", ordered_json::parse(fmt::format("{:.4g}", figure.after))},
      {"source", kSource},
      {"confidence", measured ? "fitted" : "assumed"}};
  profile["sources"][kSource] = {
      {"title",
       "Fitted to published training steps by `shardwright fit training`; docs/validation.md "
       "names the sources and the errors"}};
}

// Returns the shipped profiles with the fitted figures, by path below the folder of profiles.
std::map<std::filesystem::path, ordered_json> fitted_profiles(const validation::TrainingFit& fit) {
  std::map<std::filesystem::path, ordered_json> profiles;
  for (const validation::FittedFigure& figure : fit.figures) {
    if (!figure.is_fitted() || figure.parameter.kind == validation::ProfileKind::OtherStacks)
      continue;
    for (const std::filesystem::path& path : profile_files(figure.parameter)) {
      const auto [found, is_new] = profiles.try_emplace(path);
      if (is_new) {
        std::ifstream file(data_directory() / "hardware_profiles" / path);
        found->second = ordered_json::parse(file);
      }
      put_figure(figure, found->second);
    }
  }
  return profiles;
}

void write_profiles(const validation::TrainingFit& fit, const std::string& folder, bool overwrite) {
  for (const auto& [path, profile] : fitted_profiles(fit)) {
    const std::filesystem::path target = std::filesystem::path(folder) / path;
    std::filesystem::create_directories(target.parent_path());
    write_file(target.string(), json_text(profile), overwrite);
  }
}

Table errors_table(const validation::TrainingFit& fit) {
  Table table = error_table("absolute error of the step time");
  add_errors(table, "profiles as they are", fit.before);
  add_errors(table, "fitted", fit.after);
  add_errors(table, "each source predicted by a fit without it", fit.held_out);
  return table;
}

Table figures_table(const validation::TrainingFit& fit) {
  Table table({{"profile"},
               {"figure"},
               {"rows", kNumber},
               {"before", kNumber},
               {"fitted", kNumber},
               {"95 % from", kNumber},
               {"to", kNumber}});
  for (const validation::FittedFigure& each : fit.figures) {
    const auto number = [&](double value) {
      return each.is_fitted() ? format_number(value, 4) : std::string();
    };
    table.add_row({each.parameter.profile, each.parameter.key,
                   format_count(static_cast<std::int64_t>(each.parameter.rows.size())),
                   format_number(each.before, 4),
                   each.is_fitted() ? format_number(each.after, 4) : name_of(each.verdict),
                   number(each.low), number(each.high)});
  }
  return table;
}

ordered_json fit_json(const validation::TrainingFit& fit) {
  ordered_json figures = ordered_json::array(), held_out = ordered_json::array();
  for (const validation::FittedFigure& each : fit.figures) {
    figures.push_back({{"profile", each.parameter.profile},
                       {"figure", each.parameter.key},
                       {"rows", each.parameter.rows.size()},
                       {"before", each.before},
                       {"value", each.after},
                       {"verdict", name_of(each.verdict)},
                       {"low", each.is_fitted() ? ordered_json(each.low) : ordered_json()},
                       {"high", each.is_fitted() ? ordered_json(each.high) : ordered_json()}});
  }
  for (const validation::HeldOutError& each : fit.held_out_errors) {
    held_out.push_back(
        {{"id", each.id}, {"source", each.source}, {"error_pct", 100.0 * each.error}});
  }
  return {{"figures", std::move(figures)},
          {"errors",
           {{"before", calibration::to_json(fit.before)},
            {"after", calibration::to_json(fit.after)},
            {"held_out", calibration::to_json(fit.held_out)}}},
          {"held_out", std::move(held_out)}};
}

// Fits figures of accelerators and stacks to measured steps and prints them.
ExitCode fit_training_steps(const TrainingFitRequest& request, const CommonOptions& common) {
  const InterruptWatch interrupt;
  ProgressLine progress(show_progress(common));
  validation::TrainingFitOptions options;
  options.progress = [&](double share, const std::string& text) {
    progress.show(share, text);
    return !interrupt.interrupted();
  };
  const validation::TrainingFit fit = validation::fit_training(rows_of(request), options);
  if (interrupt.interrupted()) return ExitCode::Interrupted;
  if (!request.out.empty()) write_profiles(fit, request.out, common.force);
  Page page = new_page(common);
  page.table(errors_table(fit));
  page.table(figures_table(fit));
  nlohmann::ordered_json document = new_document("training-fit");
  document.update(fit_json(fit));
  deliver(common, page, document);
  return ExitCode::Ok;
}

struct FitOptions {
  CommonOptions common;
  std::string what;
  std::vector<std::string> files;
  std::string accelerator, cluster, out;
  std::string grades = "A";
};

struct Fitted {
  std::vector<calibration::FitStage> stages;
  nlohmann::ordered_json profile;
  // The rows that cannot be used, each with its reason.
  std::vector<std::string> left_out;
};

template <class Timing>
std::vector<std::string> left_out_of(const std::vector<Timing>& timings) {
  std::vector<std::string> rows;
  for (const Timing& timing : timings) {
    if (!timing.unsupported.empty())
      rows.push_back(fmt::format("{}: {}", timing.id, timing.unsupported));
  }
  return rows;
}

void check(const FitOptions& options) {
  ProblemList problems("shardwright fit");
  const bool kernels = options.what == "kernels";
  if (!kernels && options.what != "collectives")
    problems.add("KIND", "\"" + options.what + "\"", "kernels, collectives or training");
  else if (options.files.size() > 1)
    problems.add("FILE", std::to_string(options.files.size()) + " files", "one file of timings");
  else if (kernels && options.accelerator.empty())
    problems.add("--accelerator", "nothing", "the profile to fit, a name or a file");
  else if (!kernels && options.cluster.empty())
    problems.add("--cluster", "nothing", "the profile to fit, a name or a file");
  problems.throw_if_any();
}

Fitted run_fit(const FitOptions& options) {
  Fitted fitted;
  if (options.what == "kernels") {
    AcceleratorSpec accelerator = load_accelerator(options.accelerator);
    const std::string command =
        fmt::format("shardwright fit kernels --accelerator {}", accelerator.name);
    const auto timings = validation::read_kernel_timings(options.files.front());
    fitted.stages = calibration::fit_kernels(accelerator, timings, command);
    fitted.left_out = left_out_of(timings);
    fitted.profile = to_json(accelerator);
    return fitted;
  }
  ClusterSpec cluster = load_cluster_or_here(options.cluster);
  const std::string command = fmt::format("shardwright fit collectives --cluster {}", cluster.name);
  const auto timings = validation::read_collective_timings(options.files.front());
  fitted.stages = calibration::fit_collectives(cluster, timings, command);
  fitted.left_out = left_out_of(timings);
  fitted.profile = to_json(cluster);
  return fitted;
}

void add_stage(Page& page, const calibration::FitStage& stage) {
  page.heading(stage.name);
  Table table({{"figure"},
               {"before", kNumber},
               {"fitted", kNumber},
               {"95 % from", kNumber},
               {"to", kNumber},
               {"verdict"}});
  for (const calibration::FittedParameter& each : stage.result.parameters) {
    const bool interval = calibration::is_determined(each.verdict);
    table.add_row({each.name, format_number(each.before, 4), format_number(each.value, 4),
                   interval ? format_number(each.low, 4) : "",
                   interval ? format_number(each.high, 4) : "", name_of(each.verdict)});
  }
  page.table(table);
  const calibration::ErrorSummary before =
      calibration::summarise_logarithms(stage.result.residuals_before);
  const calibration::ErrorSummary after =
      calibration::summarise_logarithms(stage.result.residuals_after);
  page.paragraph(fmt::format(
      "{}: median error {} % before, {} % after; 90th percentile {} % before, {} % after.",
      format_plural(static_cast<std::int64_t>(stage.rows), "row"),
      format_percent(before.median_abs), format_percent(after.median_abs),
      format_percent(before.p90_abs), format_percent(after.p90_abs)));
}

nlohmann::ordered_json stage_json(const calibration::FitStage& stage) {
  nlohmann::ordered_json figures = nlohmann::ordered_json::array();
  for (const calibration::FittedParameter& each : stage.result.parameters) {
    const bool interval = calibration::is_determined(each.verdict);
    figures.push_back({{"pointer", each.name},
                       {"before", each.before},
                       {"value", each.value},
                       {"low", interval ? nlohmann::ordered_json(each.low) : nullptr},
                       {"high", interval ? nlohmann::ordered_json(each.high) : nullptr},
                       {"verdict", name_of(each.verdict)}});
  }
  const calibration::ErrorSummary after =
      calibration::summarise_logarithms(stage.result.residuals_after);
  return {{"name", stage.name},
          {"rows", stage.rows},
          {"figures", std::move(figures)},
          {"median_abs_pct", 100.0 * after.median_abs},
          {"p90_abs_pct", 100.0 * after.p90_abs},
          {"bias_pct", 100.0 * after.bias}};
}

ExitCode fit(const FitOptions& options) {
  check_destination("--json", options.common.json, options.common.force);
  if (options.what == "training")
    return fit_training_steps({options.files, options.grades, options.out}, options.common);
  check_destination("--out", options.out, options.common.force);
  check(options);
  const Fitted fitted = run_fit(options);
  if (fitted.stages.empty()) {
    throw InputError(options.files.front(), {{"", "no timing of the profile's hardware",
                                              "at least one row of its device or system"}});
  }
  Page page = new_page(options.common);
  nlohmann::ordered_json document = new_document("fit");
  document["stages"] = nlohmann::ordered_json::array();
  for (const calibration::FitStage& stage : fitted.stages) {
    add_stage(page, stage);
    document["stages"].push_back(stage_json(stage));
  }
  document["left_out"] = fitted.left_out;
  if (!fitted.left_out.empty()) {
    const auto rows = static_cast<std::int64_t>(fitted.left_out.size());
    page.paragraph(fmt::format("{} of the file cannot be used; the first is {}.",
                               format_plural(rows, "row"), fitted.left_out.front()));
  }
  if (!options.out.empty())
    write_file(options.out, json_text(fitted.profile), options.common.force);
  deliver(options.common, page, document);
  return ExitCode::Ok;
}

}  // namespace

void add_fit_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("fit", "Fit the physical figures of profiles to published timings");
  command->footer(R"(Examples:
  shardwright fit kernels gemm.jsonl --accelerator h100-sxm --out my-h100.json
  shardwright fit collectives collectives.jsonl --cluster dgx-h100
  shardwright fit training steps/*.jsonl --out profiles)");
  const auto options = std::make_shared<FitOptions>();
  add_option(*command, "kind", options->what, "KIND", "kernels, collectives or training")
      ->required();
  add_option(*command, "files", options->files, "FILE...", "Measurements, one JSON object per line")
      ->required();
  add_option(*command, "--accelerator", options->accelerator, "NAME|FILE",
             "The accelerator profile to fit (kernels)");
  add_option(*command, "--cluster", options->cluster, "NAME|FILE|here",
             "The cluster profile to fit (collectives)");
  add_option(*command, "--out", options->out, "FILE|-|FOLDER",
             "Write the fitted profile; for training, a folder for all of them");
  add_option(*command, "--grades", options->grades, "ABC",
             "Use rows of these grades (training; default A)");
  add_common_options(*command, options->common);
  command->callback([options, &action] { action = [options] { return fit(*options); }; });
}

}  // namespace shardwright::cli
