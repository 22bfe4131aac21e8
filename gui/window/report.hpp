// Writes what the views show as one document.
#pragma once

#include <QByteArray>
#include <QString>
#include <vector>

#include "gui/views/view.hpp"

namespace shardwright::gui {

// The parts of one view, under its title.
struct ReportSection {
  QString title;
  std::vector<ReportPart> parts;
};

// A page that needs no other file: charts are vectors, painted views pictures. In light colours,
// whatever those of the window are.
QByteArray report_html(const QString& title, const std::vector<ReportSection>& sections);

// The same on pages of A4, with charts as pictures.
QByteArray report_pdf(const QString& title, const std::vector<ReportSection>& sections);

}  // namespace shardwright::gui
