// Files, pictures, the clipboard and the session of the window.
#include <QClipboard>
#include <QDir>
#include <QDockWidget>
#include <QFileDialog>
#include <QFileInfo>
#include <QGuiApplication>
#include <QMenu>
#include <QSettings>
#include <nlohmann/json.hpp>

#include "gui/models/table_text.hpp"
#include "gui/models/text.hpp"
#include "gui/views/message_bar.hpp"
#include "gui/views/picture_export.hpp"
#include "gui/views/plans_view.hpp"
#include "gui/views/run_view.hpp"
#include "gui/views/why_view.hpp"
#include "gui/window/main_window.hpp"
#include "gui/window/step_presenter.hpp"

namespace shardwright::gui {
namespace {

QString file_name(const QString& path) {
  return QFileInfo(path).fileName();
}

// Both plans in one set, where they rest on the same model, cluster and stack.
PlanSetPointer joined(const PlanSet& first, const PlanSet& second) {
  const auto &a = first.request, &b = second.request;
  if (a.model != b.model || a.cluster != b.cluster || a.stack != b.stack) return nullptr;
  auto both = std::make_shared<PlanSet>(first);
  both->plans.insert(both->plans.end(), second.plans.begin(), second.plans.end());
  both->on_front.resize(both->plans.size(), false);
  both->origin += QStringLiteral(", ") + second.origin;
  return both;
}

}  // namespace

std::vector<MainWindow::Opened> MainWindow::read_files(const QStringList& paths) {
  std::vector<Opened> files;
  for (const QString& path : paths) {
    Opened opened{open_file(path), nullptr, nullptr};
    if (const auto* scenario = std::get_if<Scenario>(&opened.file.content)) {
      opened.plans = std::make_shared<const PlanSet>(plan_set_of(*scenario, path));
    } else if (const auto* set = std::get_if<PlanSetPointer>(&opened.file.content)) {
      opened.plans = *set;
    } else if (const auto* run = std::get_if<RunFolder>(&opened.file.content)) {
      opened.measured = read_measured_step(*run);
      if (!run->plan.isEmpty()) {
        const Scenario plan = load_scenario(run->plan.toStdString());
        opened.plans = std::make_shared<const PlanSet>(plan_set_of(plan, run->plan));
      }
    }
    files.push_back(std::move(opened));
  }
  return files;
}

void MainWindow::open(const QStringList& paths) {
  if (paths.isEmpty()) return;
  show_notice(tr("Reading %1 …").arg(paths.join(QStringLiteral(", "))));
  files_.start([paths](const std::stop_token&) { return read_files(paths); });
}

void MainWindow::take_files(const std::vector<Opened>& files) {
  messages_->clear();
  std::vector<Opened> plans;
  std::vector<std::shared_ptr<const Timeline>> timelines;
  for (const Opened& opened : files) {
    recent_.add(opened.file.path);
    if (std::holds_alternative<RunFolder>(opened.file.content)) {
      take_run(opened);
    } else if (const auto* timeline =
                   std::get_if<std::shared_ptr<const Timeline>>(&opened.file.content)) {
      timelines.push_back(*timeline);
    } else if (opened.plans) {
      plans.push_back(opened);
    } else {
      take_file(opened);
    }
  }
  if (!plans.empty()) take_plans(plans);
  if (!timelines.empty()) {
    step_->show_files(timelines);
    raise_view(QStringLiteral("timeline"));
  }
  fill_recent();
}

void MainWindow::take_plans(const std::vector<Opened>& plans) {
  search_.cancel();
  const PlanSet& first = *plans.front().plans;
  if (first.plans.empty()) return show_problem(tr("%1 holds no plan.").arg(first.origin));
  QString text = tr("Showing %1. A change of the scenario plans anew.")
                     .arg(file_name(plans.front().file.path));
  const PlanSet* second = plans.size() > 1 ? plans[1].plans.get() : nullptr;
  if (second == nullptr || second->plans.empty()) {
    selection_.show(plans.front().plans);
  } else if (const PlanSetPointer both = joined(first, *second)) {
    selection_.show(both);
    selection_.choose(0);
    selection_.compare_with(first.plans.size());
    raise_view(QStringLiteral("why"));
  } else {
    selection_.show(plans.front().plans);
    why_view_->compare_with(second->scenario(0), file_name(plans[1].file.path));
    raise_view(QStringLiteral("why"));
  }
  if (second != nullptr)
    text = tr("Comparing %1 with %2.")
               .arg(file_name(plans[0].file.path), file_name(plans[1].file.path));
  show_notice(text);
}

void MainWindow::take_file(const Opened& opened) {
  ScenarioChoice choice = document_.choice();
  const QString name = file_name(opened.file.path);
  if (std::holds_alternative<ClusterSpec>(opened.file.content)) {
    choice.cluster = opened.file.path.toStdString();
    choice.accelerator = choice.node = choice.fabric = "";
    document_.replace(tr("opening of %1").arg(name), choice);
  } else if (std::holds_alternative<ModelSpec>(opened.file.content)) {
    choice.model = opened.file.path.toStdString();
    document_.replace(tr("opening of %1").arg(name), choice);
  }
}

void MainWindow::take_run(const Opened& opened) {
  std::optional<planner::PlanCandidate> predicted;
  if (opened.plans) {
    search_.cancel();
    predicted = opened.plans->plans.front();
    const auto chosen = selection_.scenario();
    // The plan of a run that was started here stays among those that it was chosen from.
    if (!chosen || *chosen != opened.plans->scenario(0)) selection_.show(opened.plans);
  }
  step_->show_measured(opened.measured);
  run_view_->follow(std::get<RunFolder>(opened.file.content), predicted);
  raise_view(QStringLiteral("run"));
}

void MainWindow::plan_on(const Scenario& scenario, const QString& cluster) {
  document_.replace(tr("planning on %1").arg(file_name(cluster)),
                    choice_of(scenario, cluster.toStdString()));
  raise_view(QStringLiteral("plans"));
  show_notice(tr("Planning on %1. Undo takes the scenario back.").arg(file_name(cluster)));
}

void MainWindow::choose_files() {
  open(QFileDialog::getOpenFileNames(this, tr("Open"), QString(),
                                     tr("Shardwright and Hugging Face files (*.json);;All (*)")));
}

void MainWindow::save_plan() {
  const auto scenario = selection_.scenario();
  if (!scenario) return show_problem(tr("There is no chosen plan to save."));
  const QString file = QFileDialog::getSaveFileName(
      this, tr("Save the chosen plan"), QStringLiteral("plan.json"), tr("Plan files (*.json)"));
  if (file.isEmpty()) return;
  try {
    write_text_file(file, to_qstring(to_json(*scenario).dump(2) + "\n"));
    show_notice(tr("Saved %1.").arg(file));
  } catch (const RuntimeFailure& failure) {
    show_problem(QString::fromUtf8(failure.what()));
  }
}

void MainWindow::fill_recent() {
  recent_menu_->clear();
  for (const QString& path : recent_.paths())
    recent_menu_->addAction(path, this, [this, path] { open({path}); });
  recent_menu_->setEnabled(!recent_.paths().isEmpty());
}

void MainWindow::export_view(const QString& suffix) {
  QDockWidget* dock = current_dock();
  const QString file = QFileDialog::getSaveFileName(this, tr("Export %1").arg(dock->windowTitle()),
                                                    dock->objectName() + QLatin1Char('.') + suffix,
                                                    QStringLiteral("*.%1").arg(suffix));
  if (file.isEmpty()) return;
  try {
    if (suffix == QStringLiteral("csv")) {
      const auto* shown = qobject_cast<View*>(dock->widget());
      if (shown == nullptr || shown->table().rows.empty())
        return show_problem(tr("%1 has no data to export.").arg(dock->windowTitle()));
      write_text_file(file, to_csv(shown->table()));
    } else {
      export_picture(*dock->widget(), file);
    }
    show_notice(tr("Exported %1.").arg(file));
  } catch (const RuntimeFailure& failure) {
    show_problem(QString::fromUtf8(failure.what()));
  }
}

void MainWindow::copy_view_picture() {
  QGuiApplication::clipboard()->setImage(picture_of(*current_dock()->widget(), 2.0));
}

void MainWindow::copy_view_data() {
  const auto* shown = qobject_cast<View*>(current_dock()->widget());
  if (shown != nullptr) QGuiApplication::clipboard()->setText(to_tsv(shown->table()));
}

void MainWindow::save_session() {
  if (settings_ == nullptr) return;
  settings_->setValue(QStringLiteral("window/geometry"), saveGeometry());
  settings_->setValue(QStringLiteral("window/layout"), saveState());
  settings_->setValue(QStringLiteral("scenario"), to_qstring(to_json(document_.choice()).dump()));
  recent_.save(*settings_);
  plans_view_->save(*settings_);
  run_view_->save(*settings_);
}

void MainWindow::restore_session() {
  if (settings_ == nullptr) return;
  restoreGeometry(settings_->value(QStringLiteral("window/geometry")).toByteArray());
  restoreState(settings_->value(QStringLiteral("window/layout")).toByteArray());
  const std::string text = settings_->value(QStringLiteral("scenario")).toString().toStdString();
  const auto document = nlohmann::json::parse(text, nullptr, false);
  const bool blocked = document_.blockSignals(true);
  document_.reset(read_choice(document));
  document_.blockSignals(blocked);
  recent_.restore(*settings_);
  plans_view_->restore(*settings_);
  run_view_->restore(*settings_);
  fill_recent();
  Q_EMIT document_.changed();
}

}  // namespace shardwright::gui
