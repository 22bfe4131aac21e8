#include "gui/window/file_export.hpp"

#include <QClipboard>
#include <QDockWidget>
#include <QFileInfo>
#include <QGuiApplication>
#include <QTimer>
#include <nlohmann/json.hpp>
#include <utility>

#include "gui/models/text.hpp"
#include "gui/models/written_file.hpp"
#include "gui/views/message_bar.hpp"
#include "gui/views/picture_export.hpp"
#include "gui/views/view.hpp"
#include "gui/views/widgets.hpp"
#include "gui/window/docks.hpp"
#include "gui/window/report.hpp"
#include "planner/wording.hpp"

namespace shardwright::gui {
namespace {

QString key_of_writing(const QString& path) {
  return u"written:"_s + QFileInfo(path).absoluteFilePath();
}

// Returns the data of the view in the dock, without rows if it shows nothing.
LazyTable data_of(const QDockWidget& dock) {
  const auto* shown = qobject_cast<View*>(dock.widget());
  return shown == nullptr ? LazyTable() : shown->lazy_table();
}

// The number of rows that can be copied within a fifth of a second.
constexpr std::size_t kMostCopiedRows = 20'000;
// Work that takes no longer than that needs no message.
constexpr int kAtOnceMs = 200;

QString counted_rows(std::size_t rows) {
  return counted_text(rows, "row");
}

// Why the framework cannot train under the plan; empty if it can.
QString refusal_text(const planner::ExportFormat& format, const planner::PlanExport& result) {
  QStringList reasons;
  for (Problem problem : result.problems) {
    problem.where = planner::plan_field_text(problem.where);
    reasons.append(problem_text(problem));
  }
  if (reasons.isEmpty()) return {};
  return FileExport::tr("%1 cannot train under the chosen plan: %2.")
      .arg(to_qstring(format.title), reasons.join(u". "_s));
}

}  // namespace

FileExport::FileExport(const Docks* docks, const Selection* selection, MessageBar* messages,
                       QWidget* window)
    : QObject(window),
      docks_(docks),
      selection_(selection),
      messages_(messages),
      window_(window),
      job_(
          this, [this](const auto& file) { report_written(*file, tr("Exported %1.")); },
          [this](const QString& error) { report_failure(exported_, error); }) {}

template <class Write>
void FileExport::write_to(const QString& file, const QString& done, const Write& write) {
  try {
    write();
    report_written(file, done);
  } catch (const RuntimeFailure& failure) {
    report_failure(file, to_qstring(failure.what()));
  }
}

void FileExport::save_plan() {
  const auto scenario = selection_->scenario();
  if (!scenario)
    return messages_->say(u"command"_s, Tone::Problem, tr("There is no chosen plan to save."));
  const QString file = ask_for_file(window_, tr("Save the chosen plan"), u"plan.json"_s,
                                    tr("Plan files (*.json)"), u"json"_s);
  if (file.isEmpty()) return;
  write_to(file, tr("Saved %1."),
           [&] { write_text_file(file, to_qstring(to_json(*scenario).dump(2) + "\n")); });
}

QString FileExport::refusal_of(const planner::ExportFormat& format) const {
  const auto scenario = selection_->scenario();
  return scenario ? refusal_text(format, format.write(*scenario)) : QString();
}

void FileExport::export_plan(const planner::ExportFormat& format) {
  const auto scenario = selection_->scenario();
  if (!scenario) return;
  const QString title = to_qstring(format.title);
  const planner::PlanExport result = format.write(*scenario);
  if (const QString refusal = refusal_text(format, result); !refusal.isEmpty())
    return messages_->say(u"command"_s, Tone::Problem, refusal);
  const QString suggested = to_qstring(format.file);
  const QString suffix = QFileInfo(suggested).suffix();
  const QString file = ask_for_file(window_, tr("Export the plan for %1").arg(title), suggested,
                                    u"*.%1"_s.arg(suffix), suffix);
  if (file.isEmpty()) return;
  try {
    write_text_file(file, to_qstring(result.text));
  } catch (const RuntimeFailure& failure) {
    return report_failure(file, to_qstring(failure.what()));
  }
  QStringList lines = {tr("Exported %1. Start it with: %2").arg(file, to_qstring(result.launch))};
  for (const std::string& note : result.notes) lines.append(u"• "_s + to_qstring(note));
  messages_->take_back(key_of_writing(file));
  messages_->say(u"command"_s, Tone::Notice, lines.join(u'\n'));
}

void FileExport::save_scenario(const ScenarioChoice& choice) {
  const QString file = ask_for_file(window_, tr("Save the scenario"), u"scenario.json"_s,
                                    tr("Scenario files (*.json)"), u"json"_s);
  if (file.isEmpty()) return;
  const QString without_adapters =
      tr("Saved %1 without the adapters (LoRA) of the plan, which a scenario file cannot hold: "
         "save the plan to keep them.");
  write_to(file, choice.lora ? without_adapters : tr("Saved %1."),
           [&] { write_text_file(file, to_qstring(scenario_file(choice).dump(2) + "\n")); });
}

void FileExport::report_written(const QString& file, const QString& text) {
  if (!job_.is_running()) messages_->take_back(u"export"_s);
  messages_->take_back(key_of_writing(file));
  messages_->say(u"command"_s, Tone::Success, text.arg(file));
}

void FileExport::report_failure(const QString& file, const QString& problem) {
  if (!job_.is_running()) messages_->take_back(u"export"_s);
  messages_->say(key_of_writing(file), Tone::Problem, problem);
}

void FileExport::export_view(const QString& suffix) {
  const QDockWidget* dock = docks_->current();
  const bool is_data = suffix == u"csv"_s;
  const LazyTable shown = is_data ? data_of(*dock) : LazyTable();
  QString obstacle;
  if (is_data && shown.rows == 0) {
    obstacle = tr("%1 has no data to export.").arg(dock->windowTitle());
  } else if (is_data && job_.is_running()) {
    obstacle = tr("%1 is still being written.").arg(exported_);
  }
  if (!obstacle.isEmpty()) return messages_->say(u"command"_s, Tone::Problem, obstacle);
  const QString file =
      ask_for_file(window_, tr("Export %1").arg(dock->windowTitle()),
                   dock->objectName() + u'.' + suffix, u"*.%1"_s.arg(suffix), suffix);
  if (file.isEmpty()) return;
  if (is_data) return export_data(shown, file);
  write_to(file, tr("Exported %1."), [&] { export_picture(*dock->widget(), file); });
}

void FileExport::export_chart(QWidget& chart, const QString& suffix) {
  const QString name = chart.objectName().isEmpty() ? u"chart"_s : chart.objectName();
  const QString file = ask_for_file(window_, tr("Export the chart"), name + u'.' + suffix,
                                    u"*.%1"_s.arg(suffix), suffix);
  if (!file.isEmpty()) write_to(file, tr("Exported %1."), [&] { export_picture(chart, file); });
}

void FileExport::export_report(const QString& title, const QString& suffix,
                               const std::function<void(std::function<void()>)>& fill_views) {
  const QString file = ask_for_file(window_, tr("Export a report"), u"report.%1"_s.arg(suffix),
                                    u"*.%1"_s.arg(suffix), suffix);
  if (file.isEmpty()) return;
  write_waiting_report();
  waiting_report_ = [this, title, file] { write_report(title, file); };
  fill_views([this] { write_waiting_report(); });
  QTimer::singleShot(kAtOnceMs, this, [this, file] {
    if (!waiting_report_) return;
    messages_->say(u"report"_s, Tone::Notice,
                   tr("The report is written to %1 once all views have their figures.").arg(file),
                   {tr("Write it now"), [this] { write_waiting_report(); }});
  });
}

void FileExport::write_waiting_report() {
  messages_->take_back(u"report"_s);
  if (waiting_report_) std::exchange(waiting_report_, nullptr)();
}

void FileExport::write_report(const QString& title, const QString& file) {
  std::vector<ReportSection> sections;
  QStringList empty;
  for (const QDockWidget* dock : docks_->all()) {
    const auto* view = qobject_cast<View*>(dock->widget());
    std::vector<ReportPart> parts = view == nullptr ? std::vector<ReportPart>() : view->report();
    if (parts.empty()) empty.append(dock->windowTitle());
    if (!parts.empty()) sections.push_back({dock->windowTitle(), std::move(parts)});
  }
  const QString left_out =
      empty.isEmpty()
          ? QString()
          : tr("The report leaves out the views that show nothing: %1.").arg(empty.join(u", "_s));
  if (!left_out.isEmpty()) sections.push_back({tr("Left out"), {{{}, left_out, nullptr, {}}}});
  write_to(file, tr("Exported %1.") + u' ' + left_out, [&] {
    write_file(file, file.endsWith(u".pdf"_s) ? report_pdf(title, sections)
                                              : report_html(title, sections));
  });
}

void FileExport::export_data(const LazyTable& shown, const QString& file) {
  exported_ = file;
  job_.start([shown, file](const std::stop_token& stop) {
    const QString text = to_csv(shown.make(stop), stop);
    if (!stop.stop_requested()) write_text_file(file, text);
    return file;
  });
  QTimer::singleShot(kAtOnceMs, this, [this, file, rows = shown.rows] {
    if (!job_.is_running() || exported_ != file) return;
    messages_->say(u"export"_s, Tone::Notice,
                   tr("Writing %1 to %2 …").arg(counted_rows(rows), file),
                   {tr("Stop"), [this] { stop(); }});
  });
}

void FileExport::stop() {
  if (!job_.is_running()) return;
  job_.cancel();
  messages_->say(u"export"_s, Tone::Notice, tr("The export of %1 was stopped.").arg(exported_));
}

void FileExport::copy_picture() {
  QGuiApplication::clipboard()->setImage(picture_of(*docks_->current()->widget(), kExportScale));
}

void FileExport::copy_data() {
  const QDockWidget* dock = docks_->current();
  const LazyTable shown = data_of(*dock);
  if (shown.rows == 0) {
    return messages_->say(u"command"_s, Tone::Problem,
                          tr("%1 has no data to copy.").arg(dock->windowTitle()));
  }
  if (shown.rows > kMostCopiedRows) {
    return messages_->say(
        u"command"_s, Tone::Problem,
        tr("%1 are too many for the clipboard: export them as CSV.").arg(counted_rows(shown.rows)),
        {tr("Export as CSV"), [this] { export_view(u"csv"_s); }});
  }
  // An earlier message that there was nothing to copy is no longer true.
  messages_->take_back(u"command"_s);
  QGuiApplication::clipboard()->setText(to_tsv(shown.make({})));
}

}  // namespace shardwright::gui
