#pragma once

#include <gtest/gtest.h>

#include <QApplication>
#include <QClipboard>
#include <QFileDialog>
#include <QLineEdit>
#include <QTest>
#include <QTimer>

#include "gui/models/text.hpp"

namespace shardwright::gui {

// Pastes `name` into the next dialog for files and presses Return, because the dialog
// chooses each folder on the way of a name that is typed. `suggested`: the name that it had.
inline void answer_next_dialog(const QString& name, QString* suggested = nullptr) {
  QTimer::singleShot(0, [name, suggested] {
    auto* dialog = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
    ASSERT_NE(dialog, nullptr);
    auto* line = dialog->findChild<QLineEdit*>(u"fileNameEdit"_s);
    if (suggested != nullptr) *suggested = line->text();
    QTest::keyClick(line, Qt::Key_A, Qt::ControlModifier);
    QGuiApplication::clipboard()->setText(name);
    QTest::keyClick(line, Qt::Key_V, Qt::ControlModifier);
    QTest::keyClick(line, Qt::Key_Return);
  });
}

}  // namespace shardwright::gui
