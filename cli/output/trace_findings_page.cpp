#include "cli/output/trace_findings_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "cli/output/trace_columns.hpp"
#include "core/base/distinct_names.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/quantity_text.hpp"

namespace shardwright::cli {

void add_structure(Page& page, const calibration::LayerStructure& structure) {
  std::string shape;
  const auto add = [&](const char* name, const std::optional<std::int64_t>& size) {
    if (size)
      shape += fmt::format("{}{} {}", shape.empty() ? " Sizes of products: " : ", ", name,
                           format_count(*size));
  };
  add("tokens", structure.tokens);
  add("hidden", structure.hidden);
  add("vocabulary", structure.vocabulary);
  std::string incomplete;
  for (const calibration::IncompleteLayer& layer : structure.incomplete)
    incomplete += fmt::format(" Layer {} has {} of them{}.", layer.number, layer.anchors,
                              layer.lacks_attention ? ", and no attention" : "");
  page.heading("Layers");
  page.paragraph(fmt::format(
      "The first forward pass has {} of {} products and attentions, with {} kernels and {} each.{}",
      format_plural(structure.layers, "layer"), structure.anchors,
      format_number(structure.kernels, 3), format_time(structure.time), incomplete));
  page.paragraph(fmt::format(
      "They hold {} of the {} products and attentions up to the end of that pass.{}{}{}",
      format_count(structure.anchors_of_layers), format_count(structure.anchors_of_pass),
      10 * structure.anchors_of_layers < 9 * structure.anchors_of_pass
          ? " The others do not repeat with them: the model may have layers of another kind, too."
          : "",
      structure.by_shape ? ""
                         : " The trace has no shapes: products count as equal by the names of "
                           "their kernels, which is less sure.",
      shape.empty() ? shape : shape + "."));
}

void add_job(Page& page, const calibration::StragglerAnalysis& job) {
  page.heading("Stragglers");
  page.paragraph(fmt::format(
      "{}: {} of {} and {}. A step takes {}; replayed without the host's delays {}, and {} if all "
      "workers were alike: a slowdown of {}.",
      printable(job.file), format_plural(job.steps, "step"), format_plural(job.stages, "stage"),
      format_plural(job.replicas, "replica"), format_time(job.recorded), format_time(job.replayed),
      format_time(job.ideal), format_fixed(job.slowdown(), 3)));
  const auto workers = static_cast<std::int64_t>(job.by_worker.size());
  if (const std::int64_t all = job.stages * job.replicas; workers < all)
    page.warning(fmt::format(
        "The record has {} of {} workers. Without the others the slowdown is not that of the job.",
        workers, all));
  if (job.incomplete_steps > 0)
    page.warning(fmt::format(
        "The record lacks ops: in {} of {} some workers compute fewer than others. What follows is "
        "not the slowdown of the job.",
        format_count(job.incomplete_steps), format_plural(job.steps, "step")));
  std::vector<std::pair<std::string, double>> causes;
  for (const auto& [stage, slowdown] : job.by_stage)
    causes.emplace_back(fmt::format("stage {}", stage), slowdown);
  for (const auto& [replica, slowdown] : job.by_replica)
    causes.emplace_back(fmt::format("replica {}", replica), slowdown);
  for (const auto& [op, slowdown] : job.by_op) causes.emplace_back(printable(op), slowdown);
  for (const auto& [worker, slowdown] : job.by_worker)
    causes.emplace_back(fmt::format("stage {} of replica {}", worker.stage, worker.replica),
                        slowdown);
  std::stable_sort(causes.begin(), causes.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  Table table({{"with only these as recorded"}, {"slowdown", kNumber}});
  for (std::size_t i = 0; i < std::min(kMostRows, causes.size()); ++i)
    table.add_row({causes[i].first, format_fixed(causes[i].second, 3)});
  page.table(table);
  say_how_many_are_left_out(page, causes.size());
}

void add_held_out(Page& page, const calibration::HeldOut& held_out) {
  page.heading("Predicted by the other traces");
  Table table({{"trace"},
               {"kernels", kNumber},
               {"unknown", kNumber},
               {"median error", kNumber, "%"},
               {"90th percentile", kNumber, "%"},
               {"error of the sum", kNumber, "%"}});
  std::vector<std::string> files;
  for (const calibration::KernelErrors& each : held_out.kernels) files.push_back(each.file);
  const std::vector<std::string> names = distinct_names(files);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const calibration::KernelErrors& each = held_out.kernels[i];
    table.add_row({printable(names[i]), format_count(each.kernels), format_count(each.unknown),
                   each.median ? format_percent(*each.median) : "",
                   each.p90 ? format_percent(*each.p90) : "",
                   each.median ? format_signed_percent(each.predicted / each.measured - 1.0) : ""});
  }
  page.table(table);
  if (held_out.predicted_step && held_out.measured_step)
    page.paragraph(fmt::format(
        "Step: {} predicted, {} measured ({} %).", format_time(*held_out.predicted_step),
        format_time(*held_out.measured_step),
        format_signed_percent(*held_out.predicted_step / *held_out.measured_step - 1.0)));
}

void add_overlap(Page& page, const calibration::OverlappedGradients& overlap) {
  page.heading("What if gradients were reduced as soon as they are there");
  if (overlap.moved <= 0.0) {
    page.paragraph("No reduction of a single gradient begins later than it could.");
    return;
  }
  page.paragraph(
      fmt::format("{} reductions of a step begin earlier, and the step takes {} instead of {} ({} "
                  "%). The replay "
                  "without the change takes {}.",
                  format_number(overlap.moved, 3), format_time(overlap.predicted(), 4),
                  format_time(overlap.recorded, 4),
                  format_signed_percent(overlap.predicted() / overlap.recorded - 1.0),
                  format_time(overlap.replayed, 4)));
}

}  // namespace shardwright::cli
