// Colours that mean something, the same in every view.
//
// The categorical set is that of Okabe and Ito ("Color Universal Design", 2008,
// https://jfly.uni-koeln.de/color/), which people with the common colour vision deficiencies can
// tell apart. Colour is never the only cue: each role has a marker shape as well, and painted spans
// may use its hatch.
#pragma once

#include <QColor>
#include <QPalette>
#include <QString>
#include <Qt>
#include <array>
#include <cstdint>

#include "core/op/op.hpp"

namespace shardwright::gui {

// What a coloured thing stands for.
enum class Role : std::uint8_t {
  Forward,         // compute
  BackwardInput,   // compute
  BackwardWeight,  // compute
  Recompute,       // compute
  Optimizer,
  MatrixProducts,  // kernels of all phases from here on
  Attention,
  MemoryBound,  // kernels that memory bandwidth limits
  Tensor,       // exposed communication of an axis from here on
  Data,
  Pipeline,
  Context,
  Expert,
  Bubble,
  Host,
  Other,
};
inline constexpr int kRoles = 16;
std::array<Role, kRoles> all_roles();

// "forward", "tensor parallel", …: for legends.
QString title_of(Role role);

enum class Marker : std::uint8_t {
  Disc,
  Square,
  Diamond,
  Triangle,
  TriangleDown,
  Cross,
  Plus,
  Star
};
inline constexpr int kMarkers = 8;

// The window's lightness decides: Qt 6.4 does not tell the desktop's colour scheme.
bool is_dark(const QPalette& palette);

// The colours of one appearance. Values only; make a new one on PaletteChange.
struct Colours {
  bool dark = false;
  QColor window, base, text, muted_text, grid, frame;
  QColor accent;     // selection
  QColor good, bad;  // differences; always with a sign or an arrow beside them
  QColor warning;

  QColor of(Role role) const;
  // Text that is legible on `of(role)`.
  QColor text_on(Role role) const;
  // Categories without a role of their own (series of a chart): eight colours, then again.
  QColor series(int index) const;
};

Colours colours_for(const QPalette& palette);

// The shape that goes with `Colours::series(index)`.
Marker marker(int index);

// The hatch that tells roles apart in grey: those of compute from each other, and those of
// communication.
Qt::BrushStyle hatch(Role role);

// The role of an op that runs in `phase`, and of the communication in `group`.
Role role_of(OpKind kind, Phase phase);
Role role_of(Group group);

// The palettes of the two appearances, for screenshots and for desktops that tell nothing.
QPalette light_palette();
QPalette dark_palette();

}  // namespace shardwright::gui
