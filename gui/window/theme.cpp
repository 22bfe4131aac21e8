#include "gui/window/theme.hpp"

#include <QApplication>
#include <QProxyStyle>
#include <QStyleFactory>
#include <QStyleOption>
#include <QToolTip>

#include "gui/models/text.hpp"
#include "gui/style/palette.hpp"

namespace shardwright::gui {
namespace {

// The style of the desktop, which the program starts with.
const QString& desktop_style() {
  static const QString kFirst = QApplication::style()->name();
  return kFirst;
}

// Fusion frames fields with a colour darker than the window's, which dark colours swallow.
class FramedFields : public QProxyStyle {
 public:
  FramedFields() : QProxyStyle(QStyleFactory::create(u"Fusion"_s)) {}

  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override {
    const auto draw = [&](const QStyleOption* framed) {
      QProxyStyle::drawPrimitive(element, framed, painter, widget);
    };
    if (element != PE_FrameLineEdit || !draw_framed<QStyleOptionFrame>(option, draw)) draw(option);
  }

  void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option,
                          QPainter* painter, const QWidget* widget) const override {
    const auto draw = [&](const QStyleOptionComplex* framed) {
      QProxyStyle::drawComplexControl(control, framed, painter, widget);
    };
    const bool is_drawn =
        (control == CC_SpinBox && draw_framed<QStyleOptionSpinBox>(option, draw)) ||
        (control == CC_ComboBox && draw_framed<QStyleOptionComboBox>(option, draw));
    if (!is_drawn) draw(option);
  }

 private:
  // The style keeps pictures of controls by their palette, so that there is one for each colour.
  const QPalette& framed(const QPalette& palette) const {
    if (palette.cacheKey() != palette_) {
      palette_ = palette.cacheKey();
      framed_ = palette;
      // Fusion takes the window's colour, darker by 140, as that of frames.
      framed_.setColor(QPalette::Window, colours_for(palette).frame.lighter(140));
    }
    return framed_;
  }

  template <class Option, class Draw>
  bool draw_framed(const QStyleOption* option, const Draw& draw) const {
    const auto* own = qstyleoption_cast<const Option*>(option);
    if (own == nullptr || !is_dark(own->palette)) return false;
    Option copy(*own);
    copy.palette = framed(own->palette);
    draw(&copy);
    return true;
  }

  mutable qint64 palette_ = 0;
  mutable QPalette framed_;
};

}  // namespace

void apply_theme(Theme theme) {
  const QString& before = desktop_style();
  const bool is_own = dynamic_cast<FramedFields*>(QApplication::style()) != nullptr;
  if (theme == Theme::System) {
    if (is_own) QApplication::setStyle(QStyleFactory::create(before));
    // Without colours of its own the program follows a desktop that changes its own.
    QApplication::setPalette(QPalette());
  } else {
    if (!is_own) QApplication::setStyle(new FramedFields);
    QApplication::setPalette(theme == Theme::Dark ? dark_palette() : light_palette());
  }
  style_tool_tips();
}

void style_tool_tips() {
  QPalette palette = QApplication::palette();
  palette.setColor(QPalette::ToolTipBase, palette.color(QPalette::Button));
  palette.setColor(QPalette::ToolTipText, palette.color(QPalette::ButtonText));
  QToolTip::setPalette(palette);
}

}  // namespace shardwright::gui
