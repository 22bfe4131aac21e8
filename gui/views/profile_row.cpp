#include "gui/views/profile_row.hpp"

#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QToolButton>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/spec/cluster_json.hpp"
#include "gui/models/text.hpp"
#include "gui/models/written_file.hpp"
#include "gui/views/widgets.hpp"

namespace shardwright::gui {

ProfileRow::ProfileRow(QWidget* parent) : QWidget(parent) {
  file_ = named<QLineEdit>(u"run_profile"_s);
  file_->setPlaceholderText(tr("file for the refitted profile"));
  auto* browse = tool_button(u"run_browse_profile"_s, u"…"_s);
  auto* save = named<QPushButton>(u"run_save_profile"_s, tr("Save"));
  save->setToolTip(tr("Writes the refitted profile, a cluster file as any other"));
  auto* again = named<QPushButton>(u"run_replan"_s, tr("Plan again with it"));
  again->setToolTip(tr("Saves the profile and searches for plans of this run's scenario on it"));
  auto* line = new QHBoxLayout(this);
  line->setContentsMargins(0, 0, 0, 0);
  for (QWidget* part : std::initializer_list<QWidget*>{new QLabel(tr("Refitted profile")), file_,
                                                       browse, save, again})
    line->addWidget(part, part == file_ ? 1 : 0);
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
                                    tr("Cluster files (*.json)"), u"json"_s);
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
    Q_EMIT problem(to_qstring(failure.what()));
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
