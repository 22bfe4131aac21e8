// The columns of the plans table. One list drives header, cells, sorting, axes of the plot, colour
// and the exported data.
#pragma once

#include <QString>
#include <QStringList>
#include <functional>
#include <vector>

#include "gui/models/plan_set.hpp"

namespace shardwright::gui {

enum class FigureKind : std::uint8_t {
  // A continuous quantity, which makes an axis of the plot and a colour scale.
  Measure,
  // A category of a few whole numbers.
  Degree,
  Name,
};

// Texts name accelerators GPUs; `with_accelerator` gives them the word of a cluster.
struct PlanFigure {
  QString id;
  QString title;
  // "s"; empty if the figure has none.
  QString unit;
  QString tip;
  FigureKind kind = FigureKind::Measure;
  int decimals = 0;
  // True if its column is shown, unless `shown_for` decides otherwise.
  bool shown = true;
  std::function<bool(const PlanSet&)> shown_for;
  bool lower_is_better = true;
  // The value in `unit`; null for names.
  std::function<double(const PlanSet&, std::size_t)> value;
  // The text; null for all but names.
  std::function<QString(const PlanSet&, std::size_t)> name;

  // "Step (s)", "Tokens/s (per TPU)".
  QString heading(const char* accelerator = "GPU") const;
  QString text(const PlanSet& set, std::size_t plan) const;
  // The number with the decimals of the figure, or with three digits where these leave nothing.
  QString number_text(double number) const;
  // The number as its text has it: rounded.
  double shown_number(double number) const;
  // True if the column has something to say about the set. A choice of the user overrides it.
  bool is_shown(const PlanSet& set) const;
  // False if a choice of the plan is the same for all of several plans, so that its column tells
  // none from the others. The degrees that make the layout always do.
  bool tells_apart(const PlanSet& set) const;
};

const std::vector<PlanFigure>& plan_figures();
const PlanFigure& plan_figure(int index);

// "tp 8: Tensor-parallel ranks" and so on: rich text with a line for each choice of the plan.
QString plan_tip(const PlanSet& set, std::size_t plan);

// What a query of plans may be completed to: "tp=", "memory<", "schedule=1f1b" …
QStringList plan_completions(const PlanSet& set);

// Returns -1 if no figure has this id.
int figure_index(const QString& id);

}  // namespace shardwright::gui
