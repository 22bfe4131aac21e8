#include "gui/views/profile_row.hpp"

#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QToolButton>
#include <nlohmann/json.hpp>

#include "core/spec/cluster_json.hpp"
#include "gui/models/text.hpp"
#include "gui/models/written_file.hpp"
#include "gui/views/save_dialog.hpp"

namespace shardwright::gui {

ProfileRow::ProfileRow(QWidget* parent) : QWidget(parent) {
  file_ = new QLineEdit;
  file_->setObjectName(QStringLiteral("run_profile"));
  file_->setPlaceholderText(tr("file for the refitted profile"));
  auto* browse = new QToolButton;
  browse->setObjectName(QStringLiteral("run_browse_profile"));
  browse->setText(QStringLiteral("…"));
  auto* save = new QPushButton(tr("Save"));
  save->setObjectName(QStringLiteral("run_save_profile"));
  save->setToolTip(tr("Writes the refitted profile, a cluster file as any other"));
  auto* again = new QPushButton(tr("Plan again with it"));
  again->setObjectName(QStringLiteral("run_replan"));
  again->setToolTip(tr("Saves the profile and searches for plans of this run's scenario on it"));
  auto* line = new QHBoxLayout(this);
  line->setContentsMargins(0, 0, 0, 0);
  line->addWidget(new QLabel(tr("Refitted profile")));
  line->addWidget(file_, 1);
  line->addWidget(browse);
  line->addWidget(save);
  line->addWidget(again);
  connect(browse, &QToolButton::clicked, this, &ProfileRow::choose_file);
  connect(save, &QPushButton::clicked, this, &ProfileRow::save);
  connect(again, &QPushButton::clicked, this, &ProfileRow::replan);
  hide();
}

void ProfileRow::offer(const ClusterSpec& profile, const QString& file) {
  profile_ = profile;
  saved_.clear();
  file_->setText(file);
  show();
}

void ProfileRow::choose_file() {
  const QString file = ask_for_file(this, tr("Save the refitted profile"), file_->text(),
                                    tr("Cluster files (*.json)"), QStringLiteral("json"));
  if (!file.isEmpty()) file_->setText(file);
}

bool ProfileRow::save() {
  const QString file = file_->text().trimmed();
  try {
    if (file.isEmpty()) throw RuntimeFailure("name a file for the refitted profile");
    if (file != saved_ && QFileInfo::exists(file))
      throw RuntimeFailure(file.toStdString() + " exists: name another file");
    write_text_file(file, to_qstring(to_json(profile_).dump(2) + "\n"));
  } catch (const RuntimeFailure& failure) {
    Q_EMIT problem(QString::fromUtf8(failure.what()));
    return false;
  }
  saved_ = file;
  Q_EMIT problem({});
  Q_EMIT saved(file);
  return true;
}

void ProfileRow::replan() {
  const bool is_saved = !saved_.isEmpty() && saved_ == file_->text().trimmed();
  if (is_saved || save()) Q_EMIT replan_wanted(saved_);
}

}  // namespace shardwright::gui
