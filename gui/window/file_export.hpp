// Writes what the window shows to files and to the clipboard.
#pragma once

#include <QObject>
#include <QString>
#include <functional>

#include "gui/models/background_job.hpp"
#include "gui/models/scenario_choice.hpp"
#include "gui/models/selection.hpp"
#include "gui/models/table_text.hpp"
#include "planner/export/plan_export.hpp"

class QWidget;

namespace shardwright::gui {

class Docks;
class MessageBar;

class FileExport : public QObject {
  Q_OBJECT

 public:
  FileExport(const Docks* docks, const Selection* selection, MessageBar* messages, QWidget* window);

  // Asks for a file and writes the chosen plan to it.
  void save_plan();
  // Asks for a file and writes the chosen plan for another framework; what its format cannot say is
  // listed in a message, and nothing is written where the run would differ.
  void export_plan(const planner::ExportFormat& format);
  // Why the framework cannot train under the chosen plan; empty if it can, or if none is chosen.
  QString refusal_of(const planner::ExportFormat& format) const;
  // Asks for a file and writes the fields of the scenario, which opening it restores.
  void save_scenario(const ScenarioChoice& choice);
  // Asks for a file and writes the current view to it: "png", "svg", "pdf", or its data as "csv".
  void export_view(const QString& suffix);
  // Asks for a file and writes a chart to it, without the widgets around it.
  void export_chart(QWidget& chart, const QString& suffix);
  // Asks for a file and writes all that the views show to it, "html" or "pdf". Says which views
  // show nothing. `fill_views` calls what it is given once they show all that they can; a message
  // offers to write the report before.
  void export_report(const QString& title, const QString& suffix,
                     const std::function<void(std::function<void()>)>& fill_views);
  void copy_picture();
  void copy_data();
  bool is_busy() const { return job_.is_running() || waiting_report_; }

 private:
  void write_report(const QString& title, const QString& file);
  void write_waiting_report();
  // Writes in the background, with a message that offers to stop it if it takes long.
  void export_data(const LazyTable& shown, const QString& file);
  void stop();
  // Writes a file and says whether that went well.
  template <class Write>
  void write_to(const QString& file, const QString& done, const Write& write);
  void report_written(const QString& file, const QString& text);
  void report_failure(const QString& file, const QString& problem);

  const Docks* docks_;
  const Selection* selection_;
  MessageBar* messages_;
  QWidget* window_;
  QString exported_;
  // Writes the report that waits for the views.
  std::function<void()> waiting_report_;
  BackgroundJob<QString> job_;
};

}  // namespace shardwright::gui
