// The columns of the plans table: one list drives header, cells, sorting, axes of the plot, colour
// and the exported data.
#pragma once

#include <QString>
#include <functional>
#include <vector>

#include "gui/models/plan_set.hpp"

namespace shardwright::gui {

enum class FigureKind : std::uint8_t {
  Measure,  // continuous: an axis of the plot, a colour scale
  Degree,   // few whole numbers: a category
  Name,     // text: a category
};

struct PlanFigure {
  QString id;     // "step"
  QString title;  // "Step"
  QString unit;   // "s"; empty: none
  QString tip;
  FigureKind kind = FigureKind::Measure;
  int decimals = 0;
  bool shown = true;  // as a column, unless the next says so
  std::function<bool(const PlanSet&)> shown_for;
  bool lower_is_better = true;
  std::function<double(const PlanSet&, std::size_t)> value;  // in the unit above; all but names
  std::function<QString(const PlanSet&, std::size_t)> name;  // names only

  // "Step (s)".
  QString heading() const;
  QString text(const PlanSet& set, std::size_t plan) const;
  // Whether its column has something to say of the set, as long as the user says nothing else.
  bool is_shown(const PlanSet& set) const;
};

const std::vector<PlanFigure>& plan_figures();

// "tp 8: Tensor-parallel ranks" and so on, a line each, of all that tells the plan apart; rich
// text.
QString plan_tip(const PlanSet& set, std::size_t plan);

// -1: none of this id.
int figure_index(const QString& id);

}  // namespace shardwright::gui
