#include "core/schedule/placement.hpp"

namespace shardwright {

namespace {

enum class Direction { Down, Up };

void append_chunk(Route& route, std::int64_t stages, std::int64_t chunk, Direction direction) {
  for (std::int64_t i = 0; i < stages; ++i) {
    const std::int64_t stage = direction == Direction::Down ? i : stages - 1 - i;
    route.places.push_back({static_cast<std::int32_t>(stage), static_cast<std::int32_t>(chunk)});
  }
}

MicrobatchRange all_microbatches(const ScheduleShape& shape) {
  return {0, static_cast<std::int32_t>(shape.microbatches)};
}

}  // namespace

std::vector<Route> loop_placement(const ScheduleShape& shape) {
  Route route{{}, all_microbatches(shape)};
  for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
    append_chunk(route, shape.stages, chunk, Direction::Down);
  }
  return {route};
}

std::vector<Route> v_placement(const ScheduleShape& shape) {
  Route route{{}, all_microbatches(shape)};
  for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
    append_chunk(route, shape.stages, chunk, chunk % 2 == 0 ? Direction::Down : Direction::Up);
  }
  return {route};
}

std::vector<Route> two_way_placement(const ScheduleShape& shape) {
  const auto half = static_cast<std::int32_t>(shape.microbatches / 2);
  Route down{{}, {0, half}};
  Route up{{}, {half, half}};
  append_chunk(down, shape.stages, 0, Direction::Down);
  append_chunk(up, shape.stages, 1, Direction::Up);
  return {down, up};
}

}  // namespace shardwright
