#pragma once

#include <gtest/gtest.h>

#include <QApplication>
#include <QFileDialog>
#include <QLineEdit>
#include <QTimer>

#include "gui/models/text.hpp"

namespace shardwright::gui {

// Types `name` into the next dialog for files and accepts it. `suggested`: the name that it had.
inline void answer_next_dialog(const QString& name, QString* suggested = nullptr) {
  QTimer::singleShot(0, [name, suggested] {
    auto* dialog = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
    ASSERT_NE(dialog, nullptr);
    auto* line = dialog->findChild<QLineEdit*>(u"fileNameEdit"_s);
    if (suggested != nullptr) *suggested = line->text();
    line->setText(name);
    static_cast<QDialog*>(dialog)->accept();
  });
}

}  // namespace shardwright::gui
