#pragma once

#include <gmock/gmock.h>

#include <ostream>

#include "gui/models/text.hpp"

inline void PrintTo(const QString& text, std::ostream* out) {
  *out << qPrintable(text);
}

namespace shardwright::gui {

inline QString as_text(const QString& text) {
  return text;
}
inline QString as_text(const char* text) {
  return to_qstring(text);
}

MATCHER_P(Says, part, "") {
  return arg.contains(as_text(part));
}

}  // namespace shardwright::gui
