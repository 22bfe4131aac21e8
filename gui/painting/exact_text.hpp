// Numbers in exported tables.
#pragma once

#include <QLocale>
#include <QString>

namespace shardwright::gui {

// The shortest text that reads back as the same double.
inline QString exact_text(double value) {
  return QString::number(value, 'g', QLocale::FloatingPointShortest);
}

}  // namespace shardwright::gui
