// shardwright sweep --study and --merge
#include "cli/commands/sweep_study.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands/interrupt.hpp"
#include "cli/options/options_file.hpp"
#include "cli/options/request_options.hpp"
#include "cli/output/candidate_report.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/step_json.hpp"
#include "cli/output/step_page.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/quantity_reading.hpp"
#include "core/base/quantity_text.hpp"
#include "core/base/text_hash.hpp"
#include "planner/plan_evaluation.hpp"
#include "planner/wording.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;

constexpr const char* kStudy = "shardwright sweep --study";
constexpr const char* kStudySchema = "shardwright/study";

// Rows by the number of their scenario.
using StudyRows = std::map<std::size_t, ordered_json>;

// Every `of`-th scenario from `index` on, so that shares take about as long as each other.
struct Shard {
  std::int64_t index = 1, of = 1;
};

Shard read_shard(const std::string& text) {
  Shard shard;
  if (text.empty()) return shard;
  const std::size_t slash = text.find('/');
  const auto index = parse_count(text.substr(0, slash));
  const auto of = slash == std::string::npos ? std::nullopt : parse_count(text.substr(slash + 1));
  if (!index || !of || *index < 1 || *of < *index) {
    throw InputError(kStudy, {{"--shard", fmt::format("\"{}\"", text),
                               "a share of how many, as in 3/16, from 1/16 to 16/16"}});
  }
  return {*index, *of};
}

// Reads the words of a scenario's command line.
class ScenarioWords {
 public:
  ScenarioWords() { add_request_options(app_, options_); }

  const CLI::App& app() const { return app_; }

  RequestOptions read(const std::vector<std::string>& words) {
    options_ = {};
    try {
      app_.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (const CLI::ParseError& error) {
      throw InputError(kStudy, {{"", error.what(), "options of `shardwright plan`"}});
    }
    RequestOptions options = options_;
    options.top = "1";
    return options;
  }

 private:
  CLI::App app_;
  RequestOptions options_;
};

// What a row keeps of a plan: a study has thousands.
ordered_json summary(const planner::PlanCandidate& best, const Scenario& scenario) {
  const ordered_json whole = candidate_json(best, scenario);
  ordered_json kept;
  for (const char* name : {"layout", "plan", "step_s", "step_interval_s", "tokens_per_s_per_gpu",
                           "tflops_per_gpu", "mfu", "dollars_per_step", "joules_per_step", "score"})
    kept[name] = whole.at(name);
  kept["peak_bytes"] = whole.at("memory").at("peak_bytes");
  return kept;
}

// Numbers are numbers, so that rows can be compared and sorted by them.
ordered_json number_or_text(const std::string& text) {
  ordered_json value = ordered_json::parse(text, nullptr, false);
  return value.is_number() ? value : ordered_json(text);
}

ordered_json values_json(const OptionGrid& grid, const OptionGrid::Point& point) {
  ordered_json values = ordered_json::object();
  for (std::size_t i = 0; i < point.at.size(); ++i) {
    const auto& [name, texts] = grid.options[i];
    if (texts.size() > 1) values[name] = number_or_text(texts[point.at[i]]);
  }
  return values;
}

// A row but for what the search finds. Nothing if the search was stopped. `bad`: what is wrong with
// the scenario.
std::optional<ordered_json> found_for(const RequestOptions& options, const std::stop_token& stop,
                                      std::optional<InputError>& bad) {
  bad.reset();
  ordered_json found = {{"best", nullptr}, {"why_not", ""}};
  try {
    ChosenRequest chosen = choose_request(options, kStudy);
    chosen.request.stop = stop;
    chosen.request.front = false;
    const planner::SearchResult result = planner::search(chosen.request);
    if (stop.stop_requested()) return std::nullopt;
    if (result.plans.empty()) {
      found["why_not"] = planner::no_plan_text(chosen.request, *result.infeasible);
    } else {
      const planner::PlanCandidate& best = result.plans.front();
      found["best"] = summary(best, planner::scenario_of(chosen.request, best.plan));
    }
  } catch (const InputError& error) {
    bad = error;
    found["why_not"] = problems_text(error);
  }
  return found;
}

// The hash of each file that an option names, or of the config.json of a model's folder, because
// shares may come from machines whose files differ.
ordered_json file_hashes(const OptionGrid& grid) {
  ordered_json hashes = ordered_json::object();
  for (const auto& [name, texts] : grid.options) {
    for (const std::string& text : texts) {
      std::error_code unreadable;
      std::filesystem::path file = text;
      if (std::filesystem::is_directory(file, unreadable)) file /= "config.json";
      if (!std::filesystem::is_regular_file(file, unreadable)) continue;
      std::ifstream stream(file, std::ios::binary);
      const std::string content(std::istreambuf_iterator<char>(stream), {});
      hashes[text] = fmt::format("{:016x}", text_hash(content));
    }
  }
  return hashes;
}

// Searches the scenarios of a study one by one, until Ctrl-C.
class StudySearch {
 public:
  // `threads`: of a scenario that states none.
  StudySearch(const std::string& file, std::string threads)
      : grid_(read_option_grid(file, words_.app())), threads_(std::move(threads)) {}

  const OptionGrid& grid() const { return grid_; }

  // Nothing if the search was stopped.
  std::optional<ordered_json> row(std::size_t scenario) {
    const OptionGrid::Point& point = grid_.points[scenario];
    RequestOptions options = words_.read(point.words);
    if (options.threads.empty()) options.threads = threads_;
    std::optional<InputError> bad;
    const auto found = found_for(options, interrupt_.token(), bad);
    if (!found) return std::nullopt;
    if (bad && !first_bad_) first_bad_ = bad;
    any_good_ = any_good_ || !bad;
    ordered_json row = {{"scenario", scenario}, {"values", values_json(grid_, point)}};
    row.update(*found);
    return row;
  }

  // Throws the InputError of the first scenario if no scenario so far was without one.
  void throw_if_all_are_bad() const {
    if (first_bad_ && !any_good_) throw InputError(*first_bad_);
  }

 private:
  ScenarioWords words_;
  OptionGrid grid_;
  std::string threads_;
  InterruptWatch interrupt_;
  std::optional<InputError> first_bad_;
  bool any_good_ = false;
};

ordered_json study_json(const OptionGrid& grid, const std::string& shard) {
  ordered_json document = new_document("study");
  document["options"] = ordered_json::object();
  for (const auto& [name, texts] : grid.options) document["options"][name] = texts;
  document["files"] = file_hashes(grid);
  document["scenarios"] = grid.points.size();
  document["shard"] = shard.empty() ? ordered_json() : ordered_json(shard);
  document["partial"] = false;
  document["rows"] = ordered_json::array();
  return document;
}

Table study_table(const ordered_json& document) {
  std::vector<std::string> varied;
  for (const auto& [name, texts] : document["options"].items()) {
    if (texts.size() > 1) varied.push_back(name);
  }
  std::vector<Column> columns;
  for (const std::string& name : varied) columns.push_back({name});
  columns.insert(columns.end(), {{"step", kNumber, "s"},
                                 {"MFU", kNumber, "%"},
                                 {"memory", kNumber, "GB"},
                                 {"a step", kNumber, "$"},
                                 {"plan", ColumnKind::Prose}});
  Table table(columns);
  for (const ordered_json& row : document["rows"]) {
    std::vector<std::string> cells;
    for (const std::string& name : varied) {
      const ordered_json& value = row["values"][name];
      cells.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    }
    const ordered_json& best = row["best"];
    if (best.is_null()) {
      cells.insert(cells.end(), {"", "", "", "", row["why_not"]});
    } else {
      cells.insert(
          cells.end(),
          {format_number(best["step_s"], 4), format_percent(best["mfu"]),
           format_gigabytes(Bytes(best["peak_bytes"].get<double>())),
           best["dollars_per_step"].is_null() ? "" : format_number(best["dollars_per_step"], 3),
           best["layout"]});
    }
    table.add_row(cells);
  }
  return table;
}

ExitCode deliver_study(const CommonOptions& common, const ordered_json& document) {
  Page page = new_page(common);
  const std::size_t all = document["scenarios"];
  page.heading(fmt::format("{} of {}", document["rows"].size(), format_plural(all, "scenario")));
  const bool partial = document["partial"];
  if (partial) page.warning("interrupted: these are the scenarios searched so far");
  page.table(study_table(document));
  deliver(common, page, document);
  if (partial) return ExitCode::Interrupted;
  // A share without a plan is done as well, and its job array goes on.
  const bool any = std::any_of(document["rows"].begin(), document["rows"].end(),
                               [](const ordered_json& row) { return !row["best"].is_null(); });
  return any || !document["shard"].is_null() ? ExitCode::Ok : ExitCode::NoFeasiblePlan;
}

// The part of a share that tells its study.
ordered_json study_of(const ordered_json& document) {
  return {document["options"], document["scenarios"], document["tool_version"]};
}

ordered_json read_share(const std::string& file) {
  // This reading finds errors; the one below keeps the order of members.
  read_json_file(file);
  std::ifstream stream(file);
  ordered_json document = ordered_json::parse(stream);
  const bool is_study = document.is_object() && document.value("schema", "") == kStudySchema &&
                        document.contains("options") && document.contains("scenarios") &&
                        document.contains("files") && document.contains("tool_version") &&
                        document.contains("rows");
  if (!is_study)
    throw InputError(file, {{"/schema", "another document",
                             "the JSON of `shardwright sweep --study … --shard I/N`"}});
  return document;
}

void check_same_study(const std::string& file, const ordered_json& share,
                      const std::string& first_file, const ordered_json& first) {
  if (study_of(share) != study_of(first)) {
    throw InputError(file, {{"/options", "another study than " + first_file,
                             "shares of one study, by one version of Shardwright"}});
  }
  if (share["files"] != first["files"]) {
    throw InputError(file, {{"/files", "files with another content than those of " + first_file,
                             "the same models, clusters and other files on every machine"}});
  }
}

void add_rows(const std::string& file, const ordered_json& share, StudyRows& rows) {
  const std::size_t scenarios = share["scenarios"];
  for (std::size_t i = 0; i < share["rows"].size(); ++i) {
    const ordered_json& row = share["rows"][i];
    const std::string where = fmt::format("/rows/{}", i);
    const std::size_t scenario = row.at("scenario");
    if (scenario >= scenarios) {
      throw InputError(file, {{where + "/scenario", std::to_string(scenario),
                               fmt::format("a scenario from 0 to {}", scenarios - 1)}});
    }
    if (const auto [known, added] = rows.emplace(scenario, row); !added && known->second != row) {
      throw InputError(
          file,
          {{where, fmt::format("another result of scenario {} than in a file before", scenario),
            "the same row wherever shares overlap"}});
    }
  }
}

// What an interrupted call found for the same share and wrote to the file that this call writes.
StudyRows rows_of_interrupted_call(const CommonOptions& common, const ordered_json& study) {
  if (common.force || !std::filesystem::is_regular_file(common.json)) return {};
  StudyRows rows;
  try {
    const ordered_json before = read_share(common.json);
    const bool same = study_of(before) == study_of(study) && before["files"] == study["files"] &&
                      before["shard"] == study["shard"];
    if (same && before.value("partial", false)) add_rows(common.json, before, rows);
  } catch (const InputError&) {
    // Another document: the check of the destination refuses to replace it.
  }
  return rows;
}

void check_complete(const StudyRows& rows, std::size_t scenarios,
                    const std::vector<std::string>& partial_files) {
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < scenarios; ++i) {
    if (!rows.contains(i)) missing.push_back(i);
  }
  if (missing.empty()) return;
  const std::size_t shown = std::min<std::size_t>(missing.size(), 5);
  throw InputError(
      "shardwright sweep --merge",
      {{"--merge",
        fmt::format(
            "no row of {} (scenario {}{})", format_plural(missing.size(), "scenario"),
            fmt::join(missing.begin(), missing.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
            shown < missing.size() ? ", …" : ""),
        partial_files.empty()
            ? "all shares: scenario k, counted from 0, is in share k mod N + 1 of N"
            : fmt::format("whole shares: {} {} of an interrupted call, and the same call goes on",
                          fmt::join(partial_files, ", "),
                          partial_files.size() == 1 ? "is" : "are")}});
}

ordered_json merge_shares(const std::vector<std::string>& files) {
  ordered_json merged;
  StudyRows rows;
  std::vector<std::string> partial_files;
  for (const std::string& file : files) {
    const ordered_json share = read_share(file);
    if (share.value("partial", false)) partial_files.push_back(file);
    if (merged.is_null()) merged = share;
    check_same_study(file, share, files.front(), merged);
    add_rows(file, share, rows);
  }
  check_complete(rows, merged["scenarios"], partial_files);
  merged["shard"] = nullptr;
  merged["partial"] = false;
  merged["rows"] = ordered_json::array();
  for (auto& [scenario, row] : rows) merged["rows"].push_back(std::move(row));
  return merged;
}

}  // namespace

ExitCode run_study(CommonOptions common, const std::string& file, const std::string& shard,
                   const std::string& threads) {
  const Shard share = read_shard(shard);
  StudySearch search(file, threads);
  ordered_json document = study_json(search.grid(), shard);
  const StudyRows known = rows_of_interrupted_call(common, document);
  common.force = common.force || !known.empty();
  check_destination("--json", common.json, common.force);
  ProgressLine line(show_progress(common));
  const std::size_t scenarios = search.grid().points.size();
  const auto first = static_cast<std::size_t>(share.index - 1);
  for (std::size_t i = first; i < scenarios; i += static_cast<std::size_t>(share.of)) {
    line.show(static_cast<double>(i - first) / static_cast<double>(scenarios - first),
              fmt::format("scenario {} of {}", i + 1, scenarios));
    const auto row = known.find(i);
    const std::optional<ordered_json> found =
        row != known.end() ? std::optional(row->second) : search.row(i);
    if (!found) {
      document["partial"] = true;
      break;
    }
    document["rows"].push_back(*found);
  }
  if (!document["partial"]) line.show(1.0, "all scenarios searched");
  line.finish();
  if (known.empty()) search.throw_if_all_are_bad();
  return deliver_study(common, document);
}

ExitCode merge_study(const CommonOptions& common, const std::vector<std::string>& files) {
  check_destination("--json", common.json, common.force);
  try {
    return deliver_study(common, merge_shares(files));
  } catch (const nlohmann::json::exception& error) {
    throw InputError("shardwright sweep --merge",
                     {{"--merge", error.what(), "shares as `shardwright sweep` writes them"}});
  }
}

}  // namespace shardwright::cli
