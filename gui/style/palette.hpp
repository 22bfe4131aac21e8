// Colours that mean something, the same in every view.
//
// The categorical set is that of Okabe and Ito ("Color Universal Design", 2008,
// https://jfly.uni-koeln.de/color/), which people with the common colour vision deficiencies can
// tell apart. Colour is never the only cue: each role has a marker shape as well, and painted spans
// may use its hatch.
#pragma once

#include <QBrush>
#include <QColor>
#include <QFont>
#include <QPalette>
#include <QString>
#include <Qt>
#include <cstdint>

#include "core/op/op.hpp"

class QPainter;

namespace shardwright::gui {

enum class Role : std::uint8_t {
  // Compute by phase.
  Forward,
  BackwardInput,
  BackwardWeight,
  Recompute,
  Optimizer,
  // Kernels by kind, in all phases.
  MatrixProducts,
  Attention,
  MemoryBound,
  // Exposed communication by axis.
  Tensor,
  Data,
  Pipeline,
  Context,
  Expert,
  Bubble,
  Host,
  Other,
  // These colour the ops of two compared timelines by how much longer they take in the second.
  MuchShorter,
  Shorter,
  Unchanged,
  Longer,
  MuchLonger,
  OnlyHere,
};

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

// The window's lightness decides, because Qt 6.4 does not report the desktop's colour scheme.
bool is_dark(const QPalette& palette);

// The colours of one appearance, made anew on PaletteChange.
struct Colours {
  bool dark = false;
  QColor window, base, text, muted_text, grid, frame;
  QColor accent;
  // Differences, always with a sign or an arrow beside them.
  QColor good, bad;
  QColor warning;

  QColor of(Role role) const;
  // The colour of text that is legible on `of(role)`.
  QColor text_on(Role role) const;
  // The colours of categories without a role, as the series of a chart. They repeat after eight.
  QColor series(int index) const;
  // The fill of the range around a line of this colour.
  QColor band(const QColor& line) const;
};

Colours colours_for(const QPalette& palette);

// Mixes channel by channel. A `share` of 0 is `first`, one of 1 is `second`.
QColor mixed_colour(const QColor& first, const QColor& second, double share);
QColor faded(QColor colour, double opacity);
// Black or white, whichever has the greater contrast to the fill: at least 4.5 as WCAG 2.1 measures
// it.
QColor ink_on(const QColor& fill);

QFont pixel_font(int pixels, bool bold = false);

// The shape that goes with `Colours::series(index)`.
Marker marker(int index);

// The hatch that distinguishes the roles of compute, and those of communication, in grey.
Qt::BrushStyle hatch(Role role);
// Returns a brush whose strokes are as coarse to the eye whatever the number of device pixels a
// pixel has. Qt draws patterns in device pixels unless a hint tells the painter otherwise, which
// this function gives to `painter`.
QBrush hatch_brush(QPainter& painter, const QColor& colour, Qt::BrushStyle hatch);

// The role of an op that runs in `phase`, and of the communication in `group`.
Role role_of(OpKind kind, Phase phase);
Role role_of(Group group);

// The palettes of the two appearances, for screenshots and for desktops without a colour scheme.
QPalette light_palette();
QPalette dark_palette();

}  // namespace shardwright::gui
