#include <gtest/gtest.h>

#include <QApplication>
#include <QString>
#include <QTemporaryDir>
#include <QtGlobal>

namespace {

using Qt::StringLiterals::operator""_s;

// A warning of Qt is a mistake of the program: it fails the test during which it came.
void fail_on_warning(QtMsgType type, const QMessageLogContext&, const QString& message) {
  if (type == QtDebugMsg || type == QtInfoMsg) return;
  // The offscreen platform says this about itself.
  if (message.startsWith(u"This plugin does not support"_s)) return;
  ADD_FAILURE() << "Qt says: " << message.toStdString();
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // Somebody who wants to see the windows names another platform.
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  const QTemporaryDir runtime;
  qputenv("XDG_RUNTIME_DIR", runtime.path().toUtf8());
  qInstallMessageHandler(fail_on_warning);
  const QApplication application(argc, argv);
  return RUN_ALL_TESTS();
}
