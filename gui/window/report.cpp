#include "gui/window/report.hpp"

#include <QBuffer>
#include <QFontInfo>
#include <QPdfWriter>
#include <QTextDocument>
#include <QUrl>
#include <algorithm>
#include <functional>

#include "gui/models/text.hpp"
#include "gui/painting/navigable_view.hpp"
#include "gui/style/palette.hpp"
#include "gui/views/chart.hpp"
#include "gui/views/picture_export.hpp"

namespace shardwright::gui {
namespace {

// The sizes of a chart and of a painted view in pixels, which are as wide as an A4 page between its
// margins. Two charts fit on a page. A painted view grows with its rows as far as a page has room.
constexpr QSize kChart(640, 300), kPainted(640, 600);
constexpr int kMostPaintedHeight = 840;

constexpr const char* kStyle =
    "body { font-family: sans-serif; color: #1c2024; } h2 { margin-top: 1.5em; } "
    "table { border-collapse: collapse; font-size: small; margin-top: 12px; } "
    "th, td { padding: 2px 8px; text-align: left; border-bottom: 1px solid #d0d4d8; }";

// Gives a widget light colours and the size of a report's picture for as long as this lives.
class Posed {
 public:
  explicit Posed(QWidget& widget) : widget_(widget), before_(widget.size()) {
    if (is_dark(widget.palette())) widget.setPalette(light_palette());
    const auto* painted = qobject_cast<NavigableArea*>(&widget);
    const QSize size =
        (painted != nullptr ? kPainted : kChart).expandedTo(widget.minimumSizeHint());
    widget.resize(size);
    if (painted == nullptr || size.height() >= kMostPaintedHeight) return;
    widget.resize(size.width(),
                  std::min(kMostPaintedHeight, size.height() + painted->hidden_height()));
  }
  ~Posed() {
    widget_.setPalette(QPalette());
    widget_.resize(before_);
  }
  Posed(const Posed&) = delete;
  Posed& operator=(const Posed&) = delete;

 private:
  QWidget& widget_;
  QSize before_;
};

// Returns the address of a picture of the widget.
using Address = std::function<QString(QWidget&)>;

// The first column has the longest texts.
QString table_html(const TextTable& table) {
  if (table.rows.empty()) return {};
  QString html = u"<table width=\"100%\">"_s;
  const auto add = [&](const QStringList& cells, const QString& tag) {
    html += u"<tr>"_s;
    for (qsizetype i = 0; i < cells.size(); ++i)
      html += u"<%1%2>%3</%1>"_s.arg(tag, i == 0 ? u" width=\"45%\""_s : QString(),
                                     cells[i].toHtmlEscaped().replace(u'\n', u"<br>"_s));
    html += u"</tr>"_s;
  };
  add(table.header, u"th"_s);
  for (const QStringList& row : table.rows) add(row, u"td"_s);
  return html + u"</table>"_s;
}

QString document_html(const QString& title, const std::vector<ReportSection>& sections,
                      const Address& address_of) {
  const QString name = title.toHtmlEscaped();
  QString html =
      u"<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>%1</title>"
      "<style>%2</style></head><body><h1>%1</h1>\n"_s.arg(name, to_qstring(kStyle));
  // A page has the scenario and the plans, or two pictures of another view.
  const auto heading = [&](const char* tag, const QString& text, bool on_new_page) {
    const QString style = on_new_page ? u" style=\"page-break-before: always\""_s : QString();
    html += u"<%1%2>%3</%1>\n"_s.arg(to_qstring(tag), style, text.toHtmlEscaped());
  };
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const bool has_picture = std::ranges::any_of(
        sections[i].parts, [](const ReportPart& part) { return part.picture != nullptr; });
    heading("h2", sections[i].title, i > 1 && has_picture);
    int pictures = 0;
    for (const ReportPart& part : sections[i].parts) {
      const bool is_third = part.picture != nullptr && pictures > 0 && pictures % 2 == 0;
      if (part.picture != nullptr) ++pictures;
      if (!part.title.isEmpty()) heading("h3", part.title, is_third);
      for (const QString& line : part.text.split(u'\n', Qt::SkipEmptyParts))
        html += u"<p>%1</p>\n"_s.arg(line.toHtmlEscaped());
      if (part.picture != nullptr)
        html +=
            u"<p><img alt=\"%1\" width=\"%2\" src=\"%3\"></p>\n"_s.arg(part.title.toHtmlEscaped())
                .arg(kChart.width())
                .arg(address_of(*part.picture));
      html += table_html(part.table);
    }
  }
  return html + u"</body></html>\n"_s;
}

// Timelines have too many marks for vectors that a browser should show.
QString inline_picture(QWidget& widget) {
  const Posed posed(widget);
  const bool is_chart = qobject_cast<Chart*>(&widget) != nullptr;
  QByteArray bytes;
  if (is_chart) {
    // Browsers have other names for fonts, and another kind of letters for names that they do not
    // know.
    bytes = vectors_of(widget).replace(
        "font-family=\"",
        "font-family=\"" + QFontInfo(widget.font()).family().toUtf8() + ", sans-serif, ");
  } else {
    QBuffer buffer(&bytes);
    picture_of(widget, kExportScale).save(&buffer, "PNG");
  }
  return u"data:image/%1;base64,%2"_s.arg(is_chart ? u"svg+xml"_s : u"png"_s,
                                          QString::fromLatin1(bytes.toBase64()));
}

}  // namespace

QByteArray report_html(const QString& title, const std::vector<ReportSection>& sections) {
  return document_html(title, sections, &inline_picture).toUtf8();
}

QByteArray report_pdf(const QString& title, const std::vector<ReportSection>& sections) {
  QTextDocument document;
  int pictures = 0;
  document.setHtml(document_html(title, sections, [&](QWidget& widget) {
    const Posed posed(widget);
    QString address = u"picture:%1"_s.arg(++pictures);
    document.addResource(QTextDocument::ImageResource, QUrl(address),
                         picture_of(widget, kExportScale));
    return address;
  }));
  QBuffer bytes;
  bytes.open(QIODevice::WriteOnly);
  QPdfWriter writer(&bytes);
  writer.setTitle(title);
  writer.setPageSize(QPageSize(QPageSize::A4));
  document.print(&writer);
  return bytes.data();
}

}  // namespace shardwright::gui
