// shardwright-gui [FILE…] | --screenshots FOLDER
#include <QApplication>
#include <QCommandLineParser>
#include <QSettings>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "gui/window/main_window.hpp"
#include "gui/window/screenshots.hpp"

namespace {

constexpr int kFailure = 1;
constexpr int kBadUsage = 2;

// Help and pictures need no display.
bool needs_display(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    for (const char* option : {"--help", "-h", "--screenshots"}) {
      if (std::strncmp(argv[i], option, std::strlen(option)) == 0) return false;
    }
  }
  return true;
}

bool has_display() {
  constexpr std::array kVariables = {"QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY"};
  return std::any_of(kVariables.begin(), kVariables.end(),
                     [](const char* variable) { return !qEnvironmentVariableIsEmpty(variable); });
}

void describe(QCommandLineParser& parser, const QCommandLineOption& screenshots) {
  parser.setApplicationDescription(QStringLiteral("Explores plans for distributed training."));
  parser.addHelpOption();
  parser.addOption(screenshots);
  parser.addPositionalArgument(QStringLiteral("FILE"),
                               QStringLiteral("Plans, search results, clusters, models, timelines, "
                                              "folders of runs; two of a kind are compared."),
                               QStringLiteral("[FILE…]"));
}

int explore(const QStringList& files) {
  QSettings settings;
  shardwright::gui::MainWindow window(&settings);
  window.show();
  if (files.isEmpty()) {
    window.start();
  } else {
    window.open(files);
  }
  return QApplication::exec();
}

}  // namespace

int main(int argc, char** argv) {
  if (!needs_display(argc, argv)) {
    if (!has_display()) qputenv("QT_QPA_PLATFORM", "offscreen");
  } else if (!has_display()) {
    std::fprintf(stderr, "shardwright-gui: there is no display (DISPLAY, WAYLAND_DISPLAY)\n");
    return kFailure;
  }
  const QApplication application(argc, argv);
  QApplication::setApplicationName(QStringLiteral("shardwright-gui"));
  QApplication::setOrganizationName(QStringLiteral("shardwright"));
  const QCommandLineOption screenshots(
      QStringLiteral("screenshots"),
      QStringLiteral("Draws each view on the worked example into FOLDER and ends."),
      QStringLiteral("FOLDER"));
  QCommandLineParser parser;
  describe(parser, screenshots);
  if (!parser.parse(QApplication::arguments())) {
    std::fprintf(stderr, "shardwright-gui: %s\n", qPrintable(parser.errorText()));
    return kBadUsage;
  }
  if (parser.isSet(QStringLiteral("help"))) {
    std::printf("%s", qPrintable(parser.helpText()));
    return 0;
  }
  if (parser.isSet(screenshots))
    return shardwright::gui::take_screenshots(parser.value(screenshots)) ? 0 : kFailure;
  return explore(parser.positionalArguments());
}
