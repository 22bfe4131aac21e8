#include "gui/views/save_dialog.hpp"

#include <QFileDialog>

namespace shardwright::gui {

QString ask_for_file(QWidget* parent, const QString& title, const QString& suggestion,
                     const QString& filter, const QString& suffix) {
  QFileDialog dialog(parent, title, QString(), filter);
  dialog.setAcceptMode(QFileDialog::AcceptSave);
  dialog.setDefaultSuffix(suffix);
  dialog.selectFile(suggestion);
  return dialog.exec() == QDialog::Accepted ? dialog.selectedFiles().front() : QString();
}

}  // namespace shardwright::gui
