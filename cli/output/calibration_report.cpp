#include "cli/output/calibration_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/quantity_text.hpp"
#include "core/spec/batch_json.hpp"

namespace shardwright::cli {

namespace {

using nlohmann::ordered_json;

void warn_of_worse_steps(Page& page, const calibration::Calibration& calibration) {
  for (const calibration::StepComparison& step : calibration.steps) {
    if (!step.got_worse()) continue;
    page.warning(fmt::format(
        "the step of {} is predicted worse than before ({} % instead of {} %): the recorded steps "
        "differ from the other steps, or the runs contradict each other",
        step.run, format_signed_percent(step.error_after()),
        format_signed_percent(step.error_before())));
  }
}

void warn_of_worse_ops(Page& page, const calibration::Calibration& calibration) {
  for (const calibration::OpErrors& ops : calibration.ops) {
    if (!ops.got_worse()) continue;
    page.warning(fmt::format(
        "{} is predicted worse than before (median error {} % instead of {} %): its timings "
        "contradict each other, or depend on something that the model does not know",
        ops.kind, format_percent(ops.after.median_abs), format_percent(ops.before.median_abs)));
  }
}

void add_steps(Page& page, const calibration::Calibration& calibration, bool before) {
  if (calibration.steps.empty()) return;
  page.heading("Step time");
  std::vector<Column> columns = {{"run"}, {"measured", kNumber, "ms"}};
  if (before) {
    columns.push_back({"before", kNumber, "ms"});
    columns.push_back({"error", kNumber, "%"});
  }
  columns.push_back({before ? "after" : "predicted", kNumber, "ms"});
  columns.push_back({"error", kNumber, "%"});
  Table table(columns);
  const auto ms = [](Seconds time) { return format_number(1e3 * time.value(), 4); };
  for (const calibration::StepComparison& step : calibration.steps) {
    std::vector<std::string> cells = {step.run, ms(step.measured)};
    if (before) {
      cells.push_back(ms(step.before));
      cells.push_back(format_signed_percent(step.error_before()));
    }
    cells.push_back(ms(step.after));
    cells.push_back(format_signed_percent(step.error_after()));
    table.add_row(std::move(cells));
  }
  page.table(table);
  if (before) warn_of_worse_steps(page, calibration);
}

void add_ops(Page& page, const calibration::Calibration& calibration, bool before) {
  if (calibration.ops.empty()) return;
  page.heading("Ops");
  Seconds total;
  for (const calibration::OpErrors& ops : calibration.ops) total += ops.share;
  std::vector<Column> columns = {{"op"}, {"share", kNumber, "%"}, {"shapes", kNumber}};
  if (before) columns.push_back({"median error before", kNumber, "%"});
  columns.push_back({before ? "after" : "median error", kNumber, "%"});
  Table table(columns);
  for (const calibration::OpErrors& ops : calibration.ops) {
    // Without a run there is no step to take a share of.
    const std::string share = total > Seconds(0) ? format_percent(ops.share / total) : "";
    std::vector<std::string> cells = {ops.kind, share, std::to_string(ops.after.n)};
    if (before) cells.push_back(format_percent(ops.before.median_abs));
    cells.push_back(format_percent(ops.after.median_abs));
    table.add_row(std::move(cells));
  }
  page.table(table);
  if (before) warn_of_worse_ops(page, calibration);
}

void add_list(Page& page, const char* heading, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  page.paragraph(heading);
  page.bullets(lines);
}

// The figure's value with its unit, and its name without.
std::pair<std::string, std::string> figure_text(const calibration::CalibratedFigure& figure,
                                                double value) {
  return with_unit(figure.pointer.substr(figure.pointer.rfind('/') + 1), value, 3);
}

void add_determined_figures(Page& page, const calibration::Calibration& calibration) {
  Table table({{"of", ColumnKind::Prose},
               {"figure", ColumnKind::Prose},
               {"before", kNumber},
               {"now", kNumber},
               {"95 % from", kNumber},
               {"to", kNumber}});
  Table residuals({{"fitted to the times of"}, {"timings", kNumber}, {"residual", kNumber, "%"}});
  std::set<std::string> fitted;
  for (const calibration::CalibratedFigure& figure : calibration.figures) {
    const calibration::FittedParameter& fit = figure.fit;
    if (!calibration::is_determined(fit.verdict)) continue;
    const auto text = [&](double value) { return figure_text(figure, value).second; };
    table.add_row({figure.about, figure_text(figure, fit.value).first, text(fit.before),
                   text(fit.value), text(fit.low), text(fit.high)});
    if (fitted.insert(figure.about).second)
      residuals.add_row(
          {figure.about, std::to_string(figure.samples), format_percent(figure.residual)});
  }
  if (fitted.empty()) return;
  page.table(table);
  page.table(residuals);
}

void add_figures(Page& page, const calibration::Calibration& calibration) {
  std::vector<std::string> left, pushed, contained;
  for (const calibration::CalibratedFigure& figure : calibration.figures) {
    const calibration::FittedParameter& fit = figure.fit;
    const std::string name = fmt::format("{} ({})", figure.pointer, figure.about);
    const auto text = [&](double value) { return figure_text(figure, value).second; };
    if (fit.verdict == calibration::FitVerdict::Undetermined) {
      left.push_back(name);
    } else if (fit.verdict == calibration::FitVerdict::Contained) {
      contained.push_back(
          fmt::format("{}: {} becomes {}", name, text(fit.before), text(fit.value)));
    } else if (fit.verdict == calibration::FitVerdict::PushedToLimit) {
      pushed.push_back(fmt::format("{}: stays {}, the timings push it to {}", name, text(fit.value),
                                   text(fit.limit)));
    }
  }
  for (const std::string& name : calibration.without_curve)
    left.push_back(fmt::format("{} (predicted without a curve of its own)", name));
  page.heading("Figures");
  add_determined_figures(page, calibration);
  add_list(
      page,
      "Contained in the figures above, which were measured in training steps, so that it would "
      "count twice:",
      contained);
  add_list(page, "Not determined by these measurements; left unchanged:", left);
  add_list(page,
           "Pushed to a limit of their range by these measurements, which give only a bound or "
           "compensate for another error; left unchanged:",
           pushed);
}

ordered_json figure_json(const calibration::CalibratedFigure& figure) {
  const calibration::FittedParameter& fit = figure.fit;
  const bool interval = calibration::is_determined(fit.verdict);
  const bool pushed = fit.verdict == calibration::FitVerdict::PushedToLimit;
  return {{"pointer", figure.pointer},
          {"of", figure.about},
          {"before", fit.before},
          {"value", fit.value},
          {"low", interval ? ordered_json(fit.low) : nullptr},
          {"high", interval ? ordered_json(fit.high) : nullptr},
          {"verdict", name_of(fit.verdict)},
          {"limit", pushed ? ordered_json(fit.limit) : nullptr},
          {"timings", figure.samples},
          {"residual_ratio", figure.residual}};
}

}  // namespace

void add_calibration(Page& page, const calibration::Calibration& calibration, bool before) {
  add_steps(page, calibration, before);
  add_ops(page, calibration, before);
  add_figures(page, calibration);
}

ordered_json calibration_json(const calibration::Calibration& calibration) {
  ordered_json steps = ordered_json::array(), ops = ordered_json::array(),
               figures = ordered_json::array();
  for (const calibration::StepComparison& step : calibration.steps) {
    steps.push_back({{"run", step.run},
                     {"measured_s", step.measured.value()},
                     {"before_s", step.before.value()},
                     {"after_s", step.after.value()},
                     {"error_before_pct", 100.0 * step.error_before()},
                     {"error_after_pct", 100.0 * step.error_after()}});
  }
  for (const calibration::OpErrors& each : calibration.ops) {
    ops.push_back({{"op", each.kind},
                   {"time_s", each.share.value()},
                   {"before", calibration::to_json(each.before)},
                   {"after", calibration::to_json(each.after)}});
  }
  for (const calibration::CalibratedFigure& figure : calibration.figures)
    figures.push_back(figure_json(figure));
  return {{"steps", std::move(steps)},
          {"ops", std::move(ops)},
          {"figures", std::move(figures)},
          {"without_curve", calibration.without_curve}};
}

void add_batch_fit(Page& page, const calibration::BatchFit& fit) {
  const LossSpec& loss = fit.spec.loss;
  const CriticalBatchSpec& critical = fit.spec.critical;
  page.heading(fmt::format("Batch profile {}", fit.spec.name));
  const std::string batch =
      critical.form == CriticalBatchForm::Tokens
          ? fmt::format("{:.4g} * D^{:.3g} tokens", critical.coefficient, critical.exponent)
          : fmt::format("{:.4g} tokens", critical.coefficient);
  page.facts({{"loss", fmt::format("{:.4g} + {:.4g} / N^{:.3g} + {:.4g} / D^{:.3g} nats",
                                   loss.irreducible, loss.model_coefficient, loss.model_exponent,
                                   loss.data_coefficient, loss.data_exponent)},
              {"error", format_percent(fit.residual, 2) + " % (median over parts of the runs)"},
              {"critical batch",
               fit.with_noise > 0
                   ? fmt::format("{}, the gradient noise scale of {}", batch,
                                 format_plural(static_cast<std::int64_t>(fit.with_noise), "run"))
                   : "not measured: it takes data-parallel ranks without ZeRO-2 or 3"}});
  page.paragraph(fit.spec.notes);
}

ordered_json batch_fit_json(const calibration::BatchFit& fit) {
  return {{"profile", to_json(fit.spec)},
          {"residual_ratio", fit.residual},
          {"runs_with_noise_scale", fit.with_noise}};
}

Table error_table(const std::string& what) {
  return Table({{what, ColumnKind::Prose},
                {"rows", kNumber},
                {"median", kNumber, "%"},
                {"p90", kNumber, "%"},
                {"bias", kNumber, "%"}});
}

void add_errors(Table& table, const std::string& name, const calibration::ErrorSummary& summary) {
  if (summary.n == 0) {
    table.add_row({name, "none", "", "", ""});
    return;
  }
  table.add_row({name, format_count(static_cast<std::int64_t>(summary.n)),
                 format_percent(summary.median_abs), format_percent(summary.p90_abs),
                 format_percent(summary.bias)});
}

}  // namespace shardwright::cli
