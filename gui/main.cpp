// shardwright-gui [FILE…] | --screenshots FOLDER
#include <QApplication>
#include <QCommandLineParser>
#include <QSettings>
#include <QTemporaryDir>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "gui/models/freed_memory.hpp"
#include "gui/window/cursor_rest.hpp"
#include "gui/window/main_window.hpp"
#include "gui/window/screenshots.hpp"
#include "gui/window/stop_signals.hpp"

namespace {

using Qt::StringLiterals::operator""_s;

constexpr int kFailure = 1;
constexpr int kBadUsage = 2;

bool has_display() {
  constexpr std::array kVariables = {"QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY"};
  return std::any_of(kVariables.begin(), kVariables.end(),
                     [](const char* variable) { return !qEnvironmentVariableIsEmpty(variable); });
}

// Handles messages until there is an application, because Qt aborts if it cannot reach the display.
void end_without_display(QtMsgType type, const QMessageLogContext&, const QString&) {
  if (type != QtFatalMsg) return;
  const QByteArray platform = qgetenv("QT_QPA_PLATFORM");
  const QByteArray display = qgetenv("DISPLAY") + qgetenv("WAYLAND_DISPLAY");
  if (platform.isEmpty()) {
    std::fprintf(stderr, "shardwright-gui: the display “%s” cannot be reached\n",
                 display.constData());
  } else {
    std::fprintf(stderr, "shardwright-gui: the platform “%s” of QT_QPA_PLATFORM cannot be used%s\n",
                 platform.constData(),
                 display.isEmpty() ? "" : (" on the display “" + display + "”").constData());
  }
  std::_Exit(kFailure);
}

struct CommandLine {
  QStringList files;
  // The folder of screenshots; empty if none are wanted.
  QString screenshots;
};

const QCommandLineOption& screenshots_option() {
  static const QCommandLineOption kOption(
      u"screenshots"_s,
      u"Draws each view on the worked example into FOLDER, and FILEs that are traces of GPT-2 on "
      "eight H100, and ends."_s,
      u"FOLDER"_s);
  return kOption;
}

void describe(QCommandLineParser& parser) {
  parser.setApplicationDescription(u"Explores plans for distributed training."_s);
  // addHelpOption() would promise the options of Qt as well, none of which is read here.
  parser.addOption({{u"h"_s, u"help"_s}, u"Displays this help."_s});
  parser.addVersionOption();
  parser.addOption(screenshots_option());
  parser.addPositionalArgument(
      u"FILE"_s,
      u"Plans, search results, clusters, models, run and batch profiles, timelines, traces of "
      "profilers, folders of runs. Two of a kind are compared; of two clusters or two models, the "
      "best plans of the scenario on each."_s,
      u"[FILE…]"_s);
}

// Needs no display. Returns none if the program has nothing more to do; `code` is its exit code
// then.
std::optional<CommandLine> read_command_line(int argc, char** argv, int& code) {
  const QCoreApplication application(argc, argv);
  QCommandLineParser parser;
  describe(parser);
  code = 0;
  if (!parser.parse(QCoreApplication::arguments())) {
    std::fprintf(stderr, "shardwright-gui: %s\n", qPrintable(parser.errorText()));
    code = kBadUsage;
  } else if (parser.isSet(u"help"_s)) {
    std::printf("%s", qPrintable(parser.helpText()));
  } else if (parser.isSet(u"version"_s)) {
    std::printf("shardwright-gui %s\n", SHARDWRIGHT_VERSION);
  } else if (parser.isSet(screenshots_option()) && parser.value(screenshots_option()).isEmpty()) {
    std::fprintf(stderr, "shardwright-gui: --screenshots: found \"\"; expected a folder\n");
    code = kBadUsage;
  } else {
    return CommandLine{parser.positionalArguments(), parser.value(screenshots_option())};
  }
  return std::nullopt;
}

int explore(const QStringList& files) {
  shardwright::gui::return_large_blocks_at_once();
  QSettings settings;
  const shardwright::gui::StopSignals stop;
  const shardwright::gui::CursorRest rest;
  shardwright::gui::MainWindow window(&settings);
  window.show();
  window.begin(files);
  const int code = shardwright::gui::run_until_closed(window, stop);
  settings.sync();
  // Settings that have read a damaged file keep that status.
  QSettings written;
  written.sync();
  if (written.status() == QSettings::NoError) return code;
  std::fprintf(stderr, "shardwright-gui: the session cannot be saved in %s\n",
               qPrintable(settings.fileName()));
  return kFailure;
}

}  // namespace

int main(int argc, char** argv) {
  int code = 0;
  const auto command = read_command_line(argc, argv, code);
  if (!command) return code;
  if (!has_display() && command->screenshots.isEmpty()) {
    std::fprintf(stderr, "shardwright-gui: there is no display (DISPLAY, WAYLAND_DISPLAY)\n");
    return kFailure;
  }
  if (!has_display()) qputenv("QT_QPA_PLATFORM", "offscreen");
  const QTemporaryDir runtime;
  if (qEnvironmentVariableIsEmpty("XDG_RUNTIME_DIR"))
    qputenv("XDG_RUNTIME_DIR", runtime.path().toUtf8());
  const QtMessageHandler before = qInstallMessageHandler(end_without_display);
  const QApplication application(argc, argv);
  qInstallMessageHandler(before);
  QApplication::setApplicationName(u"shardwright-gui"_s);
  QApplication::setOrganizationName(u"shardwright"_s);
  QApplication::setApplicationVersion(QStringLiteral(SHARDWRIGHT_VERSION));
  if (!command->screenshots.isEmpty())
    return shardwright::gui::take_screenshots(command->screenshots, command->files) ? 0 : kFailure;
  return explore(command->files);
}
