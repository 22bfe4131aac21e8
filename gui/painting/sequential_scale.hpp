// A sequential colour scale for shares from 0 to 1: the higher, the further from the background in
// lightness, so that it reads in grey and with colour vision deficiencies.
//
// On light backgrounds YlOrBr of ColorBrewer (C. Brewer, https://colorbrewer2.org, listed as
// colour-blind safe), on dark ones its order reversed in lightness.
#pragma once

#include <QColor>

namespace shardwright::gui {

QColor sequential_colour(double share, bool dark);

// Width of a line for a share, in pixels: the second cue.
double sequential_width(double share);

}  // namespace shardwright::gui
