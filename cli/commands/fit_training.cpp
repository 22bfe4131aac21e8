#include "cli/commands/fit_training.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/commands/interrupt.hpp"
#include "cli/output/error_table.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/progress.hpp"
#include "core/base/data_directory.hpp"
#include "core/base/error.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/profile_library.hpp"
#include "validation/training_fit.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;

constexpr const char* kSource = "training-fit";

std::vector<validation::Measurement> rows_of(const TrainingFitRequest& request) {
  std::vector<validation::Measurement> rows;
  for (validation::Measurement& row : validation::read_measurements(request.files)) {
    if (!row.grade.empty() && request.grades.find(row.grade) != std::string::npos)
      rows.push_back(std::move(row));
  }
  return rows;
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
    if (!figure.is_fitted()) continue;
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
    table.add_row(
        {each.parameter.profile, each.parameter.key,
         format_count(static_cast<std::int64_t>(each.parameter.rows.size())),
         format_number(each.before, 4),
         each.is_fitted() ? format_number(each.after, 4) : calibration::name_of(each.verdict),
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
                       {"verdict", calibration::name_of(each.verdict)},
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

}  // namespace

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

}  // namespace shardwright::cli
