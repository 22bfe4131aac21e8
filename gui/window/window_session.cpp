// The session of the window: kept when it closes, restored when it opens.
#include <QFileInfo>
#include <QSettings>
#include <atomic>
#include <nlohmann/json.hpp>

#include "gui/models/text.hpp"
#include "gui/timeline/timeline_view.hpp"
#include "gui/views/forecast_view.hpp"
#include "gui/views/message_bar.hpp"
#include "gui/views/plans_view.hpp"
#include "gui/views/run_view.hpp"
#include "gui/views/sweep_view.hpp"
#include "gui/window/docks.hpp"
#include "gui/window/file_presenter.hpp"
#include "gui/window/main_window.hpp"
#include "gui/window/opened_files.hpp"
#include "gui/window/scenario_planner.hpp"

namespace shardwright::gui {
namespace {

std::atomic<QtMessageHandler> handler_before = nullptr;
thread_local bool is_silent = false;

void pass_on_message(QtMsgType type, const QMessageLogContext& context, const QString& text) {
  if (is_silent && type == QtWarningMsg) return;
  if (const QtMessageHandler before = handler_before) before(type, context, text);
}

// Silences the warnings of Qt in this thread for as long as this lives.
class Silence {
 public:
  Silence() {
    is_silent = true;
    handler_before = qInstallMessageHandler(pass_on_message);
  }
  ~Silence() {
    qInstallMessageHandler(handler_before);
    is_silent = false;
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
};

// Reads all of the session and removes what Qt cannot read, which it would report on standard error
// alone. Returns the keys of the removed values; the name of the file stands for lines without a
// value.
QStringList drop_damaged_values(QSettings& session) {
  const Silence silence;
  QStringList damaged;
  for (const QString& key : session.allKeys()) {
    if (session.value(key).isValid()) continue;
    damaged.append(key);
    session.remove(key);
  }
  if (session.status() == QSettings::FormatError)
    damaged.append(QFileInfo(session.fileName()).fileName());
  return damaged;
}

}  // namespace

void MainWindow::save_session() {
  if (settings_ == nullptr) return;
  take_typed_text();
  docks_->save(*settings_);
  settings_->setValue(u"window/theme"_s, to_qstring(name_of(theme_)));
  settings_->setValue(u"scenario"_s, to_qstring(to_json(document_.choice()).dump()));
  files_->save(*settings_, run_view_->released_run());
  plans_view_->save(*settings_);
  timeline_view_->save(*settings_);
  sweep_view_->save(*settings_);
  forecast_view_->save(*settings_);
  planner_->save(*settings_);
  run_view_->save(*settings_);
}

void MainWindow::report_replaced(const QStringList& damaged, const std::vector<Problem>& replaced) {
  if (damaged.empty() && replaced.empty()) return;
  QStringList lines = {tr("Defaults replace values of the last session that cannot be used:")};
  for (const QString& key : damaged) lines.append(tr("%1: cannot be read").arg(key));
  for (const Problem& problem : replaced) {
    const QString text = problem_text({"", problem.found, problem.expected});
    const QString title =
        problem.where.empty() ? tr("Scenario") : title_of(field_of(problem.where, Field::Model));
    lines.append(tr("%1: %2").arg(title, text));
  }
  messages_->say(u"session"_s, Tone::Problem, lines.join(u'\n'));
}

void MainWindow::restore_session() {
  if (settings_ == nullptr) return;
  QStringList damaged = drop_damaged_values(*settings_);
  damaged += docks_->restore(*settings_);
  const QString theme = settings_->value(u"window/theme"_s).toString();
  for (const Theme each : enumerators<Theme>())
    if (theme == to_qstring(name_of(each)) && each != theme_) take_theme(each);
  const QVariant scenario = settings_->value(u"scenario"_s);
  const auto document = nlohmann::json::parse(scenario.toString().toStdString(), nullptr, false);
  const bool blocked = document_.blockSignals(true);
  std::vector<Problem> replaced;
  if (scenario.isValid() && !document.is_object())
    replaced.push_back({"", "text that is no scenario", "its fields"});
  document_.reset(read_choice(document, replaced));
  document_.blockSignals(blocked);
  report_replaced(damaged, replaced);
  files_->restore(*settings_);
  plans_view_->restore(*settings_);
  timeline_view_->restore(*settings_);
  sweep_view_->restore(*settings_);
  messages_->say(u"forecast"_s, Tone::Problem, forecast_view_->restore(*settings_).join(u'\n'));
  opened_->set(OpenedKind::Profiles, forecast_view_->files());
  planner_->watch_parts();
  planner_->restore(*settings_);
  run_view_->restore(*settings_);
  Q_EMIT document_.changed();
}

}  // namespace shardwright::gui
