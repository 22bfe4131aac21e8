#include "cli/output/training_log_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "core/base/distinct_names.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/quantity_text.hpp"

namespace shardwright::cli {
namespace {

// A figure of a log's last step, which frameworks print or do not.
struct LoggedFigure {
  Column column;
  std::optional<double> (*of)(const calibration::LoggedStep& step);
};

std::vector<LoggedFigure> logged_figures() {
  using Step = const calibration::LoggedStep&;
  return {{{"TFLOP/s", kNumber, "per GPU"},
           [](Step step) {
             return step.flop_rate_per_gpu ? std::optional(step.flop_rate_per_gpu->value() * 1e-12)
                                           : std::nullopt;
           }},
          {{"tokens/s", kNumber, "per GPU"}, [](Step step) { return step.tokens_per_s_per_gpu; }},
          {{"samples/s", kNumber}, [](Step step) { return step.samples_per_s; }},
          {{"MFU", kNumber, "%"},
           [](Step step) { return step.mfu ? std::optional(100 * *step.mfu) : std::nullopt; }},
          {{"last loss", kNumber}, [](Step step) { return step.loss; }}};
}

}  // namespace

void add_training_logs(Page& page, const std::vector<calibration::TrainingLog>& logs) {
  std::vector<LoggedFigure> figures = logged_figures();
  std::erase_if(figures, [&](const LoggedFigure& figure) {
    return std::none_of(logs.begin(), logs.end(), [&](const calibration::TrainingLog& log) {
      return figure.of(log.steps.back()).has_value();
    });
  });
  std::vector<Column> columns = {{"log"}, {"framework"}, {"steps", kNumber}, {"step", kNumber}};
  for (const LoggedFigure& figure : figures) columns.push_back(figure.column);
  Table table(columns);
  std::vector<std::string> files;
  bool any_stamps = false;
  for (const calibration::TrainingLog& log : logs) {
    files.push_back(log.file);
    any_stamps = any_stamps || log.times_from_stamps;
  }
  const std::vector<std::string> names = distinct_names(files);
  for (std::size_t i = 0; i < logs.size(); ++i) {
    const std::optional<Seconds> step = logs[i].step();
    std::vector<std::string> row = {printable(names[i]), logs[i].framework,
                                    format_count(static_cast<std::int64_t>(logs[i].steps.size())),
                                    step ? format_time(*step) : ""};
    for (const LoggedFigure& figure : figures) {
      const std::optional<double> value = figure.of(logs[i].steps.back());
      row.push_back(value ? format_number(*value, 4) : "");
    }
    table.add_row(std::move(row));
  }
  page.table(table);
  page.paragraph(fmt::format(
      "The step is the median without the first tenth of the steps{}; other figures are those of "
      "the last step.",
      any_stamps ? ", where a log states no times by the times at which its lines were written"
                 : ""));
}

}  // namespace shardwright::cli
