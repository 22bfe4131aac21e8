// Light and dark: that of the desktop, or the one that the user chooses in the window.
#pragma once

#include <cstdint>

#include "core/base/enum_names.hpp"

namespace shardwright::gui {

enum class Theme : std::uint8_t { System, Light, Dark };

// The names in a session.
constexpr auto enum_names(Theme) {
  return std::array{"system", "light", "dark"};
}

// Restyles all windows of the program.
void apply_theme(Theme theme);

// Gives tool tips the colours of the program's windows.
void style_tool_tips();

}  // namespace shardwright::gui
