#include "gui/topology/link_tracks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace shardwright::gui {
namespace {

// The least distance of two tracks, the most, and that from the boxes.
constexpr double kLeastTrack = 2.5, kMostTrack = 7.0, kFromBoxes = 4.0;
// The share of the width of a box along which its lines begin or end.
constexpr double kUsedWidth = 0.7;

using Way = std::vector<QPointF>;

Way straight(const ConnectedBoxes& line) {
  return {{line.lower.center().x(), line.lower.top()},
          {line.upper.center().x(), line.upper.bottom()}};
}

bool any_cross(const std::vector<ConnectedBoxes>& lines) {
  std::vector<std::pair<double, double>> ends;
  ends.reserve(lines.size());
  for (const ConnectedBoxes& line : lines)
    ends.emplace_back(line.lower.center().x(), line.upper.center().x());
  std::sort(ends.begin(), ends.end());
  return !std::is_sorted(ends.begin(), ends.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
}

// Returns where each line leaves its lower box: side by side, in the order of their upper ends.
std::vector<double> lower_ends(const std::vector<ConnectedBoxes>& lines) {
  std::map<double, std::vector<std::size_t>> lines_of_box;
  for (std::size_t i = 0; i < lines.size(); ++i)
    lines_of_box[lines[i].lower.center().x()].push_back(i);
  std::vector<double> ends(lines.size());
  for (auto& [centre, of_box] : lines_of_box) {
    std::sort(of_box.begin(), of_box.end(), [&](std::size_t a, std::size_t b) {
      return lines[a].upper.center().x() < lines[b].upper.center().x();
    });
    const double pitch =
        kUsedWidth * lines[of_box.front()].lower.width() / static_cast<double>(of_box.size());
    const double middle = 0.5 * static_cast<double>(of_box.size() - 1);
    for (std::size_t i = 0; i < of_box.size(); ++i)
      ends[of_box[i]] = centre + pitch * (static_cast<double>(i) - middle);
  }
  return ends;
}

// Returns the place at the lower edge of `box` that lies farthest from the other verticals, because
// one line on another would hide it.
double upper_end(const QRectF& box, const std::set<double>& others) {
  constexpr int kTries = 12;
  const auto distance = [&](double x) {
    const auto next = others.lower_bound(x);
    double least = std::numeric_limits<double>::max();
    if (next != others.end()) least = *next - x;
    if (next != others.begin()) least = std::min(least, x - *std::prev(next));
    return least;
  };
  // The middle is the best of equal places, and any place that is this far from all is as good.
  constexpr double kFarEnough = 4.0;
  double best = box.center().x();
  for (int i = 1; i <= kTries && distance(best) < kFarEnough; ++i) {
    const double aside = 0.5 * kUsedWidth * box.width() * i / kTries;
    for (const double x : {box.center().x() - aside, box.center().x() + aside}) {
      if (distance(x) > distance(best)) best = x;
    }
  }
  return best;
}

}  // namespace

std::vector<Way> ways_between(const std::vector<ConnectedBoxes>& lines, double floor) {
  std::vector<Way> ways;
  for (const ConnectedBoxes& line : lines) ways.push_back(straight(line));
  if (!any_cross(lines)) return ways;
  // The track and the upper end of each box of the upper level, by the middle of the box.
  std::map<double, std::pair<double, double>> upper;
  for (const ConnectedBoxes& line : lines) upper[line.upper.center().x()] = {};
  const double top = lines.front().upper.bottom() + kFromBoxes;
  const double room = floor - kFromBoxes - top;
  const double between =
      std::min(kMostTrack, room / std::max(1.0, static_cast<double>(upper.size() - 1)));
  if (between < kLeastTrack) return ways;
  const std::vector<double> ends = lower_ends(lines);
  std::set<double> verticals(ends.begin(), ends.end());
  double track = top + 0.5 * (room - between * static_cast<double>(upper.size() - 1));
  for (auto& [centre, place] : upper) {
    place.first = std::exchange(track, track + between);
    const auto line = std::find_if(lines.begin(), lines.end(), [&](const ConnectedBoxes& each) {
      return each.upper.center().x() == centre;
    });
    place.second = upper_end(line->upper, verticals);
    verticals.insert(place.second);
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto [y, x] = upper.at(lines[i].upper.center().x());
    ways[i] = {{ends[i], lines[i].lower.top()}, {ends[i], y}, {x, y}, {x, lines[i].upper.bottom()}};
  }
  return ways;
}

}  // namespace shardwright::gui
