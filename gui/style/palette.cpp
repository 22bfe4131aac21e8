#include "gui/style/palette.hpp"

#include <QPaintEngine>
#include <QPainter>
#include <cmath>

#include "core/program/groups.hpp"

namespace shardwright::gui {
namespace {

// Okabe and Ito, "Color Universal Design".
constexpr QRgb kOrange = 0xffe69f00;
constexpr QRgb kSkyBlue = 0xff56b4e9;
constexpr QRgb kGreen = 0xff009e73;
constexpr QRgb kYellow = 0xfff0e442;
constexpr QRgb kBlue = 0xff0072b2;
constexpr QRgb kVermilion = 0xffd55e00;
constexpr QRgb kPurple = 0xffcc79a7;

struct RoleStyle {
  const char* title;
  // The colours on a light and on a dark background, so that neither is too pale.
  QRgb light, dark;
  Qt::BrushStyle hatch;
};

// Matrix products and attention lie at least 16 CIELAB units from each other and from all other
// roles, for full colour vision and without any one kind of cones (by the matrices of Machado,
// Oliveira and Fernandes 2009, https://doi.org/10.1109/TVCG.2009.113).
constexpr EnumArray<Role, RoleStyle> kStyles{{{
    {"forward", kBlue, 0xff3d9bd6, Qt::SolidPattern},
    {"backward (input)", kGreen, 0xff25b58b, Qt::BDiagPattern},
    {"backward (weight)", 0xff7fc8ae, 0xff0b7a5b, Qt::Dense6Pattern},
    {"recompute", kSkyBlue, 0xff8fd0f5, Qt::CrossPattern},
    {"optimizer", 0xff6a5acd, 0xff9d90ee, Qt::HorPattern},
    {"GEMMs", 0xff1b3358, 0xffdce8f8, Qt::FDiagPattern},
    {"attention", 0xff9911ff, 0xffa03fe6, Qt::Dense5Pattern},
    {"memory-bound kernels", 0xff8c9bb0, 0xff7b8aa3, Qt::VerPattern},
    {"tensor parallel", kVermilion, 0xffe8762b, Qt::SolidPattern},
    {"data parallel", kPurple, 0xffdb93bb, Qt::HorPattern},
    {"pipeline parallel", kOrange, kOrange, Qt::VerPattern},
    {"context parallel", 0xff9c4f2e, 0xffc27a55, Qt::FDiagPattern},
    {"expert parallel", 0xffd8c800, kYellow, Qt::Dense6Pattern},
    {"bubble", 0xffd4d4d4, 0xff4a4d52, Qt::BDiagPattern},
    {"host", 0xff7a7a7a, 0xffa0a0a0, Qt::DiagCrossPattern},
    {"other", 0xffb5b0a6, 0xff6d6a64, Qt::SolidPattern},
    // These are the colours of RdBu by ColorBrewer (https://colorbrewer2.org); dark backgrounds
    // have a dark middle.
    {"at least 20 % shorter", 0xff2166ac, 0xff58a6e0, Qt::HorPattern},
    {"5 to 20 % shorter", 0xff92c5de, 0xff2d638c, Qt::SolidPattern},
    {"within 5 %", 0xffdcdcdc, 0xff3d4249, Qt::SolidPattern},
    {"5 to 20 % longer", 0xfff4a582, 0xff8c4a3a, Qt::Dense6Pattern},
    {"at least 20 % longer", 0xffb2182b, 0xfff0705a, Qt::BDiagPattern},
    {"only in one", 0xff7b3294, 0xffb58ae0, Qt::DiagCrossPattern},
}}};

const RoleStyle& style_of(Role role) {
  return kStyles[role];
}

QPalette palette_of(QRgb window, QRgb base, QRgb text, QRgb button, QRgb accent) {
  QPalette palette;
  const QColor text_colour(text);
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText,
                          QPalette::ToolTipText, QPalette::BrightText})
    palette.setColor(role, text_colour);
  palette.setColor(QPalette::Window, QColor(window));
  palette.setColor(QPalette::Base, QColor(base));
  palette.setColor(QPalette::AlternateBase, QColor(window));
  palette.setColor(QPalette::Button, QColor(button));
  palette.setColor(QPalette::ToolTipBase, QColor(button));
  palette.setColor(QPalette::Highlight, QColor(accent));
  palette.setColor(QPalette::HighlightedText, Qt::white);
  // White is legible on the accent, which is too near to the ground for letters of its own.
  palette.setColor(QPalette::Link,
                   mixed_colour(QColor(accent), text_colour, is_dark(palette) ? 0.25 : 0.1));
  // The line below tabs has this colour.
  palette.setColor(QPalette::Light,
                   mixed_colour(QColor(base), text_colour, is_dark(palette) ? 0.25 : 0.0));
  const QColor faint = faded(text_colour, 0.5);
  // Hints are read, unlike what is disabled.
  palette.setColor(QPalette::PlaceholderText, mixed_colour(QColor(base), text_colour, 0.62));
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
    palette.setColor(QPalette::Disabled, role, faint);
  return palette;
}

}  // namespace

QString title_of(Role role) {
  return QString::fromUtf8(style_of(role).title);
}

bool is_dark(const QPalette& palette) {
  return palette.color(QPalette::Window).lightness() < 128;
}

QColor Colours::of(Role role) const {
  return QColor(dark ? style_of(role).dark : style_of(role).light);
}

QColor Colours::text_on(Role role) const {
  return ink_on(of(role));
}

QColor mixed_colour(const QColor& first, const QColor& second, double share) {
  const auto blend = [share](int from, int to) {
    return static_cast<int>(std::lround(from + (to - from) * share));
  };
  return {blend(first.red(), second.red()), blend(first.green(), second.green()),
          blend(first.blue(), second.blue())};
}

QColor faded(QColor colour, double opacity) {
  colour.setAlphaF(static_cast<float>(opacity));
  return colour;
}

QColor ink_on(const QColor& fill) {
  const auto linear = [](double channel) {
    return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4);
  };
  const double luminance =
      0.2126 * linear(fill.redF()) + 0.7152 * linear(fill.greenF()) + 0.0722 * linear(fill.blueF());
  // The contrast of black and of white is equal where (L + 0.05)^2 = 1.05 * 0.05.
  constexpr double kMiddle = 0.1791;
  return luminance > kMiddle ? Qt::black : Qt::white;
}

QColor Colours::series(int index) const {
  constexpr std::array<QRgb, 8> light = {kBlue,   kVermilion, kGreen,     kPurple,
                                         kOrange, kSkyBlue,   0xff6a5acd, 0xff5a5a5a};
  constexpr std::array<QRgb, 8> night = {0xff3d9bd6, 0xffe8762b, 0xff25b58b, 0xffdb93bb,
                                         kOrange,    kSkyBlue,   0xff9d90ee, 0xffb8b8b8};
  const auto place = static_cast<std::size_t>(index) % light.size();
  return QColor(dark ? night[place] : light[place]);
}

QColor Colours::band(const QColor& line) const {
  return faded(line, dark ? 0.42 : 0.22);
}

Colours colours_for(const QPalette& palette) {
  Colours colours;
  colours.dark = is_dark(palette);
  colours.window = palette.color(QPalette::Window);
  colours.base = palette.color(QPalette::Base);
  colours.text = palette.color(QPalette::Text);
  colours.muted_text = mixed_colour(colours.base, colours.text, 0.65);
  colours.grid = mixed_colour(colours.base, colours.text, 0.12);
  colours.frame = mixed_colour(colours.base, colours.text, 0.30);
  colours.accent = palette.color(QPalette::Highlight);
  colours.good = QColor(colours.dark ? 0xff25b58b : 0xff00795a);
  colours.bad = QColor(colours.dark ? 0xffe8762b : 0xffb34700);
  colours.warning = QColor(colours.dark ? 0xffe6b84d : 0xff8a5a00);
  return colours;
}

QFont pixel_font(int pixels, bool bold) {
  QFont font;
  font.setPixelSize(pixels);
  font.setBold(bold);
  return font;
}

Marker marker(int index) {
  return static_cast<Marker>(static_cast<std::size_t>(index) % kEnumCount<Marker>);
}

Qt::BrushStyle hatch(Role role) {
  return style_of(role).hatch;
}

QBrush hatch_brush(QPainter& painter, const QColor& colour, Qt::BrushStyle hatch) {
  QBrush brush(colour, hatch);
  const double scale = painter.deviceTransform().m11();
  // A fraction of a device pixel would make some strokes of a pattern wider than others.
  const double whole = std::round(scale);
  const bool has_pixels = painter.paintEngine()->type() == QPaintEngine::Raster;
  if (!has_pixels || whole < 2.0) return brush;
  painter.setRenderHint(QPainter::NonCosmeticBrushPatterns);
  brush.setTransform(QTransform::fromScale(whole / scale, whole / scale));
  return brush;
}

Role role_of(OpKind kind, Phase phase) {
  if (kind == OpKind::Send || kind == OpKind::Receive) return Role::Pipeline;
  if (kind == OpKind::Offload || kind == OpKind::HostOptimizer) return Role::Host;
  if (is_communication(kind)) return Role::Other;
  constexpr EnumArray<Phase, Role> kOfPhase = {
      {Role::Forward, Role::Recompute, Role::BackwardInput, Role::BackwardWeight, Role::Optimizer}};
  return kOfPhase[phase];
}

Role role_of(Group group) {
  if (group == Group::ExpertTensor) return Role::Tensor;
  if (group == Group::Mirror) return Role::Pipeline;
  constexpr EnumArray<Axis, Role> kOfAxis = {
      {Role::Tensor, Role::Context, Role::Expert, Role::Data, Role::Pipeline}};
  return kOfAxis[axis_of(group)];
}

QPalette light_palette() {
  return palette_of(0xfff4f5f7, 0xffffffff, 0xff1d2126, 0xfffafbfc, 0xff1f6feb);
}

QPalette dark_palette() {
  return palette_of(0xff1e2126, 0xff17191d, 0xffe4e6ea, 0xff2a2e35, 0xff2d70e0);
}

}  // namespace shardwright::gui
