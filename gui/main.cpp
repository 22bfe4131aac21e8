// shardwright-gui [FILE…] | --screenshots FOLDER
#include <QApplication>
#include <QCommandLineParser>
#include <QSettings>

#include "gui/window/main_window.hpp"
#include "gui/window/screenshots.hpp"

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  QApplication::setApplicationName(QStringLiteral("shardwright-gui"));
  QApplication::setOrganizationName(QStringLiteral("shardwright"));
  QCommandLineParser parser;
  parser.setApplicationDescription(QStringLiteral("Explores plans for distributed training."));
  parser.addHelpOption();
  const QCommandLineOption screenshots(
      QStringLiteral("screenshots"),
      QStringLiteral("Draws each view on the worked example into FOLDER and ends."),
      QStringLiteral("FOLDER"));
  parser.addOption(screenshots);
  parser.addPositionalArgument(QStringLiteral("FILE"),
                               QStringLiteral("Plans, search results, clusters, models, timelines, "
                                              "folders of runs; two of a kind are compared."),
                               QStringLiteral("[FILE…]"));
  parser.process(application);
  if (parser.isSet(screenshots))
    return shardwright::gui::take_screenshots(parser.value(screenshots)) ? 0 : 1;

  QSettings settings;
  shardwright::gui::MainWindow window(&settings);
  window.show();
  if (parser.positionalArguments().isEmpty()) {
    window.start();
  } else {
    window.open(parser.positionalArguments());
  }
  return QApplication::exec();
}
