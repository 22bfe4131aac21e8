#include "gui/window/stop_signals.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <QApplication>
#include <QSocketNotifier>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "core/base/error.hpp"
#include "gui/window/main_window.hpp"

namespace shardwright::gui {
namespace {

constexpr std::array kStopSignals = {SIGINT, SIGTERM, SIGHUP};
constexpr int kSignalStatus = 128;

int write_end = -1;

// Passes the signal on through the pipe, because a handler may do little more than write.
extern "C" void pass_on(int signal) {
  const int error = errno;
  const auto number = static_cast<unsigned char>(signal);
  // A full pipe holds signals enough.
  [[maybe_unused]] const ssize_t written = ::write(write_end, &number, sizeof number);
  errno = error;
}

void handle(void (*handler)(int)) {
  for (const int signal : kStopSignals) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace

StopSignals::StopSignals(QObject* parent) : QObject(parent) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0)
    throw RuntimeFailure(std::string("no pipe for signals: ") + std::strerror(errno));
  read_end_ = ends[0];
  write_end = ends[1];
  connect(new QSocketNotifier(read_end_, QSocketNotifier::Read, this), &QSocketNotifier::activated,
          this, &StopSignals::take);
  handle(pass_on);
}

StopSignals::~StopSignals() {
  handle(SIG_DFL);
  close(read_end_);
  close(write_end);
}

void StopSignals::take() {
  unsigned char number = 0;
  while (::read(read_end_, &number, sizeof number) > 0) Q_EMIT came(number);
}

int run_until_closed(MainWindow& window, const StopSignals& stop) {
  // close() would ask about a run, and do nothing while a dialog is open.
  QObject::connect(&stop, &StopSignals::came, &window, [&window](int signal) {
    window.save_session();
    window.hide();
    QCoreApplication::exit(kSignalStatus + signal);
  });
  return QApplication::exec();
}

}  // namespace shardwright::gui
