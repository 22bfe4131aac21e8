#include "cli/output/program_match_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/base/distinct_names.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/quantity_text.hpp"

namespace shardwright::cli {
namespace {

using calibration::DifferenceCause;
using calibration::MatchedOp;
using calibration::ProgramMatch;

constexpr std::size_t kMostOps = 16;
constexpr std::size_t kLongestAbout = 34;

std::string cause_text(DifferenceCause cause) {
  switch (cause) {
    case DifferenceCause::SlowerKernel:
      return "slower kernel";
    case DifferenceCause::FasterKernel:
      return "faster kernel";
    case DifferenceCause::OtherFormat:
      return "other number format";
    case DifferenceCause::MissingFusion:
      return "missing fusion";
    case DifferenceCause::MoreFusion:
      return "more fusion";
    case DifferenceCause::ExposedCollective:
      return "exposed collective";
    case DifferenceCause::HiddenCollective:
      return "hidden collective";
    case DifferenceCause::HostBoundGap:
      return "gap: the host";
    case DifferenceCause::OtherGap:
      return "gap: a stream or stage";
    case DifferenceCause::NotInPlan:
      return "not in the plan";
    case DifferenceCause::NotInTrace:
      return "not in the trace";
    case DifferenceCause::NotRecorded:
      return "not recorded";
  }
  return "";
}

std::string ratio_text(Seconds measured, Seconds predicted) {
  return predicted > Seconds(0.0) && measured > Seconds(0.0)
             ? format_signed_percent(measured / predicted - 1.0)
             : "";
}

std::string size_text(const Work& work) {
  if (const auto* gemm = std::get_if<GemmWork>(&work))
    return fmt::format("{} x {} x {}", gemm->m, gemm->n, gemm->k);
  if (const auto* attention = std::get_if<AttentionWork>(&work))
    return fmt::format("{} x {} heads", attention->q_tokens, attention->heads);
  if (const auto* message = std::get_if<CommunicationWork>(&work))
    return format_bytes(message->bytes);
  return "";
}

std::string count_text(double count) {
  return format_number(count, 3);
}

std::string short_text(const std::string& text) {
  return printable(text.size() <= kLongestAbout ? text : text.substr(0, kLongestAbout - 1) + "…");
}

void add_summary(Page& page, const ProgramMatch& match) {
  Table table({{"in a step", ColumnKind::Prose},
               {"predicted", kNumber, "ms"},
               {"measured", kNumber, "ms"},
               {"difference", kNumber, "ms"}});
  const int decimals =
      decimals_for(1e3 * std::max(match.predicted_step, match.measured_step).value());
  const auto ms = [&](Seconds time) { return format_fixed(1e3 * time.value(), decimals); };
  const auto add = [&](const char* name, Seconds predicted, Seconds measured) {
    table.add_row({name, ms(predicted), ms(measured), ms(measured - predicted)});
  };
  add("step", match.predicted_step, match.measured_step);
  add("exposed communication", match.predicted_exposed, match.measured_exposed);
  add("gaps in which the device waits for the host", match.predicted_host_gaps,
      match.measured_host_gaps);
  add("other gaps", match.predicted_other_gaps, match.measured_other_gaps);
  page.table(table);
}

void add_kinds(Page& page, const ProgramMatch& match) {
  Table table({{"kind of op"},
               {"ops", kNumber},
               {"matched", kNumber},
               {"kernels", kNumber},
               {"predicted", kNumber, "ms"},
               {"measured", kNumber, "ms"},
               {"error", kNumber, "%"}});
  for (const OpKind kind : enumerators<OpKind>()) {
    MatchedOp sum;
    for (const MatchedOp& op : match.ops) {
      if (op.kind != kind) continue;
      sum.ops += op.ops;
      sum.matched += op.kernels > 0.0 ? op.matched : 0.0;
      sum.kernels += op.kernels;
      sum.predicted += op.predicted;
      sum.measured += op.measured;
    }
    if (sum.ops <= 0.0) continue;
    table.add_row({name_of(kind), count_text(sum.ops), count_text(sum.matched),
                   count_text(sum.kernels), format_number(1e3 * sum.predicted.value(), 4),
                   format_number(1e3 * sum.measured.value(), 4),
                   ratio_text(sum.measured, sum.predicted)});
  }
  page.table(table);
}

void add_ops(Page& page, const ProgramMatch& match) {
  std::vector<const MatchedOp*> largest;
  for (const MatchedOp& op : match.ops)
    if (!op.times.empty()) largest.push_back(&op);
  if (largest.empty()) return;
  std::stable_sort(largest.begin(), largest.end(), [](const MatchedOp* a, const MatchedOp* b) {
    return a->measured > b->measured;
  });
  Table table({{"op"},
               {"phase"},
               {"size", kNumber},
               {"ops", kNumber},
               {"predicted", kNumber, "µs"},
               {"measured", kNumber, "µs"},
               {"error", kNumber, "%"},
               {"of peak", kNumber, "%"},
               {"of memory", kNumber, "%"}});
  for (std::size_t i = 0; i < std::min(kMostOps, largest.size()); ++i) {
    const MatchedOp& op = *largest[i];
    const auto each = [&](Seconds time) {
      return format_number(1e6 * (time / op.matched).value(), 4);
    };
    table.add_row({short_text(op.name), name_of(op.phase), size_text(op.work),
                   count_text(op.matched), each(op.predicted), each(op.measured),
                   ratio_text(op.measured, op.predicted),
                   op.roofline ? format_percent(op.roofline->of_peak) : "",
                   op.roofline ? format_percent(op.roofline->of_bandwidth) : ""});
  }
  page.table(table);
  if (largest.size() > kMostOps)
    page.paragraph(fmt::format("These are the largest {} of {} ops; --json lists all.", kMostOps,
                               largest.size()));
}

void add_differences(Page& page, const ProgramMatch& match) {
  page.heading("Largest differences");
  if (match.differences.empty()) {
    page.paragraph("Nothing differs by more than 0.01 % of the step.");
    return;
  }
  Table table({{"what"},
               {"cause"},
               {"predicted", kNumber, "ms"},
               {"measured", kNumber, "ms"},
               {"difference", kNumber, "ms"}});
  const auto ms = [](Seconds time) { return format_number(1e3 * time.value(), 4); };
  for (const calibration::StepDifference& each : match.differences)
    table.add_row({short_text(each.about), cause_text(each.cause), ms(each.predicted),
                   ms(each.measured), ms(each.difference())});
  page.table(table);
}

void add_overview(Page& page, const std::vector<ProgramMatch>& matches) {
  std::vector<std::string> files;
  for (const ProgramMatch& each : matches) files.push_back(each.file);
  const std::vector<std::string> names = distinct_names(files);
  Table table({{"trace"},
               {"stage", kNumber},
               {"predicted", kNumber, "step, ms"},
               {"measured", kNumber, "step, ms"},
               {"error", kNumber, "%"}});
  for (std::size_t i = 0; i < matches.size(); ++i)
    table.add_row({printable(names[i]), format_count(matches[i].stage),
                   format_number(1e3 * matches[i].predicted_step.value(), 4),
                   format_number(1e3 * matches[i].measured_step.value(), 4),
                   ratio_text(matches[i].measured_step, matches[i].predicted_step)});
  page.table(table);
}

}  // namespace

void add_program_matches(Page& page, const std::vector<ProgramMatch>& matches) {
  if (matches.empty()) return;
  const ProgramMatch& first = matches.front();
  page.heading("Measured beside predicted");
  if (matches.size() > 1) add_overview(page, matches);
  page.paragraph(
      fmt::format("{} of stage {}, the mean of {}; errors are measured over predicted.",
                  first.rank ? fmt::format("Rank {}", *first.rank) : printable(first.file),
                  first.stage, format_plural(first.steps, "step")));
  if (first.steps_inferred)
    page.warning(
        "The trace marks no steps. Their number is inferred from how often it has the plan's "
        "matrix products, and is wrong where the plan has other layers than the traced model.");
  add_summary(page, first);
  add_kinds(page, first);
  add_ops(page, first);
  add_differences(page, first);
}

}  // namespace shardwright::cli
