// Paints a pipeline schedule: a row for each stage, boxes with microbatch numbers, a moment of the
// replay. Knows no widget.
#pragma once

#include <QFont>
#include <QPainter>
#include <QRectF>
#include <optional>
#include <vector>

#include "gui/models/text.hpp"
#include "gui/painting/axis_window.hpp"
#include "gui/schedule/schedule_gantt.hpp"

namespace shardwright::gui {

struct BoxRef {
  std::size_t stage = 0;
  std::size_t box = 0;

  bool operator==(const BoxRef&) const = default;
};

enum class ScheduleMark : std::uint8_t { Phase, NoSlot, None };

struct ScheduleLegendEntry {
  ScheduleMark mark = ScheduleMark::None;
  // It is used by ScheduleMark::Phase only.
  SlotPhase phase{};
  QString text;
};

// Goes through all slots of a stage.
std::vector<ScheduleLegendEntry> legend_of(const ScheduleGantt& gantt);
// Returns the hatch of a phase in a schedule with this legend. Whole backward passes have none
// beside passes that are split, because both have the same colour.
Qt::BrushStyle hatch_of(SlotPhase phase, const std::vector<ScheduleLegendEntry>& legend);

struct ScheduleScene : PaintedScene<BoxRef> {
  // The moment of the replay; boxes that start later are faint.
  std::optional<double> moment;
  std::vector<ScheduleLegendEntry> legend;
};

struct ScheduleGeometry {
  ScheduleGeometry(const QSizeF& size, const ScheduleGantt& gantt,
                   const std::vector<ScheduleLegendEntry>& entries);

  // The legend is empty where it would take the room of the rows.
  QRectF summary, axis, names, plot, legend;
  // Shows the whole step below the plot; empty where the plot can show it legibly, and where it
  // would take the room of the rows.
  QRectF overview;
  double row_height = 0.0;
  // The height of all rows; the plot may be lower.
  double rows_height = 0.0;

  // In one line, or in two where the width asks for it.
  QStringList summary_lines;

  QRectF row(std::size_t stage, const AxisWindow& rows) const;
};

class SchedulePainter {
 public:
  SchedulePainter(QPainter& painter, const ScheduleGantt& gantt, const ScheduleScene& scene,
                  const Colours& colours, const QSizeF& size);

  void paint();

 private:
  void paint_summary();
  void paint_axis();
  void paint_stage(std::size_t stage);
  void paint_boxes(std::size_t stage, const QRectF& lane, const AxisWindow& window);
  void paint_overview();
  void paint_name(std::size_t stage);
  void paint_box(const GanttBox& box, const QRectF& rect, const BoxRef& ref);
  void paint_moment();
  void paint_legend();
  void paint_legend_mark(const ScheduleLegendEntry& entry, const QRectF& swatch);
  QColor bubble_fill() const;
  QColor fill_of(const GanttBox& box) const;

  QPainter& painter_;
  const ScheduleGantt& gantt_;
  const ScheduleScene& scene_;
  const Colours& colours_;
  ScheduleGeometry geometry_;
  QFont font_, bold_, small_;
  // The font of the numbers of a phase, null where they do not fit: all slots of a phase have their
  // numbers, or none has.
  EnumArray<SlotPhase, const QFont*> number_fonts_{};
};

// Returns the part of the step that is shown first: as much as leaves microbatch numbers legible.
AxisWindow first_window(const ScheduleGantt& gantt, double plot_width);

// "1f1b · 4 stages · 32 microbatches" and "1.20 s · bubble 8.6 % in stage 2, the busiest".
QStringList schedule_summary(const ScheduleGantt& gantt);
// Returns the summary with an explanation of its bubble, as rich text.
QString schedule_summary_tip(const ScheduleGantt& gantt);
// Where the times of the slots come from.
TipSource source_of(const ScheduleGantt& gantt);

}  // namespace shardwright::gui
