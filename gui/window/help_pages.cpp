#include "gui/window/help_pages.hpp"

#include <QApplication>
#include <QDialog>
#include <QFile>
#include <QLineEdit>
#include <QMessageBox>
#include <QRegularExpression>
#include <QTextBrowser>
#include <QTextFrame>
#include <QTextTable>
#include <QVBoxLayout>

#include "gui/models/text.hpp"
#include "gui/views/widgets.hpp"

// Resources of a static library are left out unless its user names them, outside of any namespace.
static void load_help_resources() {
  Q_INIT_RESOURCE(help);
}

namespace shardwright::gui {
namespace {

QString glossary() {
  load_help_resources();
  QFile page(u":/help/glossary.md"_s);
  if (!page.open(QFile::ReadOnly)) return {};
  // Links lead to pages that the window does not have.
  static const QRegularExpression link(u"\\[([^\\]]*)\\]\\([^)]*\\)"_s);
  return QString::fromUtf8(page.readAll()).replace(link, u"\\1"_s);
}

// Tables get single lines and room around their texts.
void restyle_tables(QTextDocument& page, const QColor& line) {
  for (QTextFrame* frame : page.rootFrame()->childFrames()) {
    auto* table = qobject_cast<QTextTable*>(frame);
    if (table == nullptr) continue;
    constexpr double kPadding = 4.0;
    QTextTableFormat format = table->format();
    format.setBorderCollapse(true);
    format.setBorder(1.0);
    format.setBorderStyle(QTextFrameFormat::BorderStyle_Solid);
    format.setBorderBrush(line);
    format.setCellSpacing(0.0);
    format.setCellPadding(kPadding);
    table->setFormat(format);
  }
}

// Goes to the next place of the text, and from the last one to the first.
void find_in(QTextBrowser& page, const QString& text) {
  if (text.isEmpty() || page.find(text)) return;
  page.moveCursor(QTextCursor::Start);
  page.find(text);
}

}  // namespace

void show_glossary(QWidget* window) {
  if (auto* open = window->findChild<QDialog*>(u"glossary"_s)) {
    open->raise();
    open->activateWindow();
    return open->findChild<QLineEdit*>(u"glossary_find"_s)->setFocus();
  }
  auto* dialog = named<QDialog>(u"glossary"_s, window);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(QObject::tr("Glossary"));
  auto* page = named<QTextBrowser>(u"glossary_page"_s);
  page->setMarkdown(glossary());
  restyle_tables(*page->document(), page->palette().color(QPalette::Mid));
  auto* line = named<QLineEdit>(u"glossary_find"_s);
  line->setPlaceholderText(QObject::tr("Find a word: bubble, ZeRO, MFU …"));
  line->setClearButtonEnabled(true);
  QObject::connect(line, &QLineEdit::textChanged, page, [page](const QString& text) {
    page->moveCursor(QTextCursor::Start);
    find_in(*page, text);
  });
  QObject::connect(line, &QLineEdit::returnPressed, page,
                   [page, line] { find_in(*page, line->text()); });
  auto* layout = new QVBoxLayout(dialog);
  layout->addWidget(line);
  layout->addWidget(page);
  dialog->resize(QSize(900, 600).boundedTo(window->size()));
  dialog->show();
}

void show_about(QWidget* window) {
  auto* page = new QMessageBox(window);
  page->setObjectName(u"about"_s);
  page->setAttribute(Qt::WA_DeleteOnClose);
  page->setWindowTitle(QObject::tr("About Shardwright"));
  page->setTextFormat(Qt::RichText);
  page->setText(
      QObject::tr(
          "<h3>Shardwright %1</h3><p>Finds, explains and runs plans for training large "
          "language models on many accelerators.</p><p>Shardwright is under the Apache "
          "License 2.0. This program draws its charts with QCustomPlot and is under the GNU "
          "General Public License, version 3 or later. It uses Qt %2.</p>")
          .arg(QApplication::applicationVersion(), to_qstring(qVersion())));
  page->open();
}

}  // namespace shardwright::gui
