// What traces measured, and beside it what the chosen plan predicts.
#pragma once

#include <QWidget>
#include <vector>

#include "gui/models/trace_comparison.hpp"
#include "gui/views/view.hpp"

class QLabel;
class QTableWidget;

namespace shardwright::gui {

class TracePanel : public QWidget {
  Q_OBJECT

 public:
  explicit TracePanel(QWidget* parent = nullptr);

  // Shows one trace, or two beside each other. The names are those of the files.
  void show_measured(const std::vector<calibration::TraceReport>& reports,
                     const QStringList& names);
  // Says why there is nothing beside the trace, or that it is worked on.
  void show_note(const QString& note);
  void show_comparison(const TraceComparison& comparison);
  void show_change(const calibration::TraceChange& change);

  // Gives way to the timeline in a narrow window, as far as its tables leave some.
  QSize sizeHint() const override;

  // The texts and tables; nothing while the panel is hidden.
  std::vector<ReportPart> report() const;

 private:
  QLabel *title_, *summary_, *note_;
  QTableWidget *categories_, *step_, *differences_;
};

}  // namespace shardwright::gui
