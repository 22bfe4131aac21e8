// The order that the user gives the tracks.
#include <algorithm>

#include "gui/timeline/timeline_tracks.hpp"

namespace shardwright::gui {
namespace {

QString key_among_its_like(const Track& track) {
  return track.kind == TrackKind::Rank ? track.rank_label : track.key();
}

}  // namespace

std::vector<TimelineTracks::Block> TimelineTracks::blocks_beside(const Track& track) const {
  std::vector<Block> blocks;
  for (const Track& each : tracks_) {
    if (each.pinned != track.pinned) continue;
    const bool of_ranks = track.kind == TrackKind::Rank;
    const bool is_like = of_ranks || track.pinned ||
                         (each.rank_label == track.rank_label && each.kind != TrackKind::Rank);
    if (!is_like) continue;
    const QString key = of_ranks ? each.rank_label : each.key();
    if (blocks.empty() || blocks.back().key != key) blocks.push_back({key, each.y, each.y});
    blocks.back().bottom = each.y + each.height;
  }
  return blocks;
}

std::optional<TimelineTracks::DropPlace> TimelineTracks::drop_place(const Track& track,
                                                                    double shown_y,
                                                                    double scroll) const {
  std::vector<Block> others = blocks_beside(track);
  std::erase_if(others, [&](const Block& block) { return block.key == key_among_its_like(track); });
  if (others.empty()) return std::nullopt;
  const double above = track.pinned ? 0.0 : scroll;
  const auto below = std::find_if(others.begin(), others.end(), [&](const Block& block) {
    return 0.5 * (block.top + block.bottom) > shown_y + above;
  });
  const double y = below != others.end() ? below->top : others.back().bottom;
  return DropPlace{static_cast<std::size_t>(below - others.begin()), y - above};
}

void TimelineTracks::move(const Track& track, std::size_t position) {
  const QString moved = key_among_its_like(track);
  QStringList keys;
  for (const Block& block : blocks_beside(track)) {
    if (block.key != moved) keys.append(block.key);
  }
  keys.insert(std::min(static_cast<qsizetype>(position), keys.size()), moved);
  QStringList& order = track.kind == TrackKind::Rank ? rank_order_
                       : track.pinned                ? pinned_
                                                     : row_order_;
  // The order keeps the keys of other steps and other ranks.
  for (const QString& key : keys) order.removeAll(key);
  order = keys + order;
  place_all();
}

std::optional<std::size_t> TimelineTracks::position_beside(const Track& track, int step) const {
  const std::vector<Block> blocks = blocks_beside(track);
  const auto own = std::find_if(blocks.begin(), blocks.end(), [&](const Block& block) {
    return block.key == key_among_its_like(track);
  });
  const auto position = (own - blocks.begin()) + step;
  if (own == blocks.end() || position < 0 || position >= static_cast<std::ptrdiff_t>(blocks.size()))
    return std::nullopt;
  return static_cast<std::size_t>(position);
}

bool TimelineTracks::can_nudge(const Track& track, int step) const {
  return position_beside(track, step).has_value();
}

bool TimelineTracks::nudge(const Track& track, int step) {
  const auto position = position_beside(track, step);
  if (position) move(track, *position);
  return position.has_value();
}

}  // namespace shardwright::gui
