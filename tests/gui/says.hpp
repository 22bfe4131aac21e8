// This header defines a matcher for the texts that the window shows.
#pragma once

#include <gmock/gmock.h>

#include <ostream>

#include "gui/models/text.hpp"

// Prints a text in the messages of a failed test.
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
