#include "gui/window/session_values.hpp"

#include <QFileInfo>
#include <QSettings>
#include <QtGlobal>
#include <atomic>

namespace shardwright::gui {
namespace {

std::atomic<QtMessageHandler> handler_before = nullptr;
thread_local bool is_silent = false;

void pass_on_message(QtMsgType type, const QMessageLogContext& context, const QString& text) {
  if (is_silent && type == QtWarningMsg) return;
  if (const QtMessageHandler before = handler_before) before(type, context, text);
}

// Keeps warnings of Qt in this thread to itself, for as long as this lives.
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

}  // namespace

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

}  // namespace shardwright::gui
