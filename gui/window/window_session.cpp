// The session of the window: kept when it closes, restored when it opens.
#include <QSettings>
#include <nlohmann/json.hpp>

#include "gui/models/text.hpp"
#include "gui/timeline/timeline_view.hpp"
#include "gui/views/plans_view.hpp"
#include "gui/views/run_view.hpp"
#include "gui/window/main_window.hpp"
#include "gui/window/message_list.hpp"
#include "gui/window/session_values.hpp"

namespace shardwright::gui {

void MainWindow::save_session() {
  if (settings_ == nullptr) return;
  take_typed_text();
  settings_->setValue(QStringLiteral("window/geometry"), saveGeometry());
  settings_->setValue(QStringLiteral("window/layout"), saveState());
  settings_->setValue(QStringLiteral("scenario"), to_qstring(to_json(document_.choice()).dump()));
  recent_.save(*settings_);
  QStringList unread = reading_;
  for (const Reading& next : next_to_read_) unread += next.paths;
  opened_->save(*settings_, unread);
  plans_view_->save(*settings_);
  timeline_view_->save(*settings_);
  run_view_->save(*settings_);
}

void MainWindow::tell_replaced(const QStringList& damaged, const std::vector<Problem>& replaced) {
  if (damaged.empty() && replaced.empty()) return;
  QStringList lines = {tr("Defaults stand for what the last session cannot show:")};
  for (const QString& key : damaged) lines.append(tr("%1: cannot be read").arg(key));
  for (const Problem& problem : replaced) {
    const QString text = problem_text({"", problem.found, problem.expected});
    const QString title =
        problem.where.empty() ? tr("Scenario") : title_of(field_of(problem.where, Field::Model));
    lines.append(tr("%1: %2").arg(title, text));
  }
  messages_->say(QStringLiteral("session"), Tone::Problem, lines.join(QLatin1Char('\n')));
}

QStringList MainWindow::restore_layout() {
  QStringList damaged;
  const auto restore = [&](const char* key, auto put) {
    const QString name = QString::fromUtf8(key);
    if (settings_->contains(name) && !put(settings_->value(name).toByteArray()))
      damaged.append(name);
  };
  restore("window/geometry", [this](const QByteArray& state) {
    const bool restored = restoreGeometry(state);
    resize(size().boundedTo(largest_size()));  // The session may come from a larger screen.
    return restored;
  });
  restore("window/layout", [this](const QByteArray& state) {
    return restoreState(state) || (restoreState(default_layout_), false);
  });
  return damaged;
}

void MainWindow::restore_session() {
  if (settings_ == nullptr) return;
  QStringList damaged = drop_damaged_values(*settings_);
  damaged += restore_layout();
  messages_->show_all();  // nothing yet, whatever stood there
  const QVariant scenario = settings_->value(QStringLiteral("scenario"));
  const auto document = nlohmann::json::parse(scenario.toString().toStdString(), nullptr, false);
  const bool blocked = document_.blockSignals(true);
  std::vector<Problem> replaced;
  if (scenario.isValid() && !document.is_object())
    replaced.push_back({"", "text that is no scenario", "its fields"});
  document_.reset(read_choice(document, replaced));
  document_.blockSignals(blocked);
  tell_replaced(damaged, replaced);
  recent_.restore(*settings_);
  plans_view_->restore(*settings_);
  timeline_view_->restore(*settings_);
  watch_parts();
  run_view_->restore(*settings_);
  fill_recent();
  Q_EMIT document_.changed();
}

}  // namespace shardwright::gui
