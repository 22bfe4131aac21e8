#include "gui/views/profile_box.hpp"

#include <QFileDialog>
#include <QFileInfo>
#include <QKeyEvent>
#include <QWheelEvent>

#include "gui/views/widgets.hpp"

namespace shardwright::gui {
namespace {

bool is_file(const QString& name_or_path) {
  return QFileInfo(name_or_path).isAbsolute();
}

}  // namespace

ProfileBox::ProfileBox(const QString& name, const QString& what) : what_(what) {
  setObjectName(name);
  addItem(tr("Other file…"), QString());
  setSizeAdjustPolicy(QComboBox::AdjustToContents);
  leave_wheel_to_scrolling(*this);
  connect(this, &QComboBox::currentIndexChanged, this, &ProfileBox::take);
  connect(this, &QComboBox::activated, this, [this](int index) {
    if (!itemData(index).toString().isEmpty()) return;
    setCurrentIndex(chosen_);
    if (!steps_) ask_for_file();
  });
}

void ProfileBox::add(const QString& name_or_path, const QString& tip) {
  int index = findData(name_or_path);
  if (index < 0) {
    index = count() - 1;
    const QString title = is_file(name_or_path) ? QFileInfo(name_or_path).fileName()
                                                : QString(name_or_path).replace(u'-', u' ');
    insertItem(index, title, name_or_path);
  }
  const QString path = is_file(name_or_path) ? name_or_path : QString();
  setItemData(index, path.isEmpty() || tip.isEmpty() ? path + tip : path + u'\n' + tip,
              Qt::ToolTipRole);
}

bool ProfileBox::choose(const QString& name_or_path) {
  const int index = name_or_path.isEmpty() ? -1 : findData(name_or_path);
  if (index >= 0) setCurrentIndex(index);
  return index >= 0;
}

QStringList ProfileBox::files() const {
  QStringList paths;
  for (int i = 0; i < count(); ++i)
    if (is_file(itemData(i).toString())) paths.append(itemData(i).toString());
  return paths;
}

void ProfileBox::take(int index) {
  if (itemData(index).toString().isEmpty() || index == chosen_) return;
  chosen_ = index;
  Q_EMIT chosen_changed();
}

void ProfileBox::keyPressEvent(QKeyEvent* event) {
  steps_ = true;
  QComboBox::keyPressEvent(event);
  steps_ = false;
}

void ProfileBox::wheelEvent(QWheelEvent* event) {
  steps_ = true;
  QComboBox::wheelEvent(event);
  steps_ = false;
}

void ProfileBox::ask_for_file() {
  const QString path =
      QFileDialog::getOpenFileName(this, what_, QString(), tr("Profiles (*.json);;All (*)"));
  if (!path.isEmpty()) Q_EMIT file_wanted(QFileInfo(path).absoluteFilePath());
}

}  // namespace shardwright::gui
