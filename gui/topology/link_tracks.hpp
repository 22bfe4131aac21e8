// Routes the links between two levels of the map. Where straight lines would cross, each box of the
// upper level gets a horizontal track, and the links of the lower level rise to it. So the picture
// shows rails and Clos networks, also where all links have the same load.
#pragma once

#include <QPointF>
#include <QRectF>
#include <vector>

namespace shardwright::gui {

// The box of the lower level and that of the upper one which a line connects.
struct ConnectedBoxes {
  QRectF lower, upper;
};

// Returns the points of each line, from its lower end to its upper end. All boxes of one level have
// the same height. The tracks lie above `floor`; where these would lie too close to each other, the
// lines are straight.
std::vector<std::vector<QPointF>> ways_between(const std::vector<ConnectedBoxes>& lines,
                                               double floor);

}  // namespace shardwright::gui
