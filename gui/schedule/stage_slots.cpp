#include "gui/schedule/stage_slots.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "core/program/rank_grid.hpp"
#include "core/program/shard_shape.hpp"
#include "gui/models/shown_ranks.hpp"

namespace shardwright::gui {
namespace {

// The time from the first op to the last.
struct Extent {
  double start = std::numeric_limits<double>::infinity();
  double end = 0.0;

  bool empty() const { return start > end; }
  void add(double from, double to) {
    start = std::min(start, from);
    end = std::max(end, to);
  }
};

// The passes of a stage for one microbatch in one chunk.
struct Passes {
  Extent forward, input, weight;
};

class SlotFinder {
 public:
  SlotFinder(const ModelSpec& model, const Plan& plan)
      : schedule_(make_schedule(plan.schedule, shape_of(plan))),
        layers_(split_layers(model, plan)),
        grid_(plan) {}

  std::optional<StageSlotTimes> find(const Timeline& timeline) const {
    const auto ranks = first_ranks(timeline, grid_);
    if (ranks.size() != schedule_.stages.size()) return std::nullopt;
    StageSlotTimes times;
    for (const auto& [stage, rank] : ranks) {
      const auto number = static_cast<std::size_t>(stage);
      auto of_stage = slots_of(number, passes_of(timeline, number, rank));
      if (!of_stage) return std::nullopt;
      times.push_back(std::move(*of_stage));
    }
    return times;
  }

 private:
  // Chunk and microbatch.
  using PassKey = std::pair<std::int32_t, std::int32_t>;
  using PassMap = std::map<PassKey, Passes>;

  // Timelines count the embedding to the first layer. It lies in the first chunk, even if that has no
  // layer. The head, behind the last layer, lies in the last chunk.
  std::int32_t position_of(const Span& span) const {
    if (span.layer == 0 && span.name.starts_with("embedding")) return 0;
    const std::int32_t layer = span.layer;
    const auto end = std::find_if(layers_.begin(), layers_.end(), [&](const LayerRange& range) {
      return layer < range.first + range.count;
    });
    return static_cast<std::int32_t>(std::min(end, layers_.end() - 1) - layers_.begin());
  }

  std::optional<std::int32_t> chunk_of(std::size_t stage, const Span& span) const {
    const std::int32_t position = position_of(span);
    for (std::size_t c = 0; c < schedule_.position[stage].size(); ++c) {
      const auto route = static_cast<std::size_t>(schedule_.route[stage][c]);
      const MicrobatchRange& range = schedule_.routes[route].microbatches;
      if (schedule_.position[stage][c] == position && span.microbatch >= range.first &&
          span.microbatch < range.first + range.count)
        return static_cast<std::int32_t>(c);
    }
    return std::nullopt;
  }

  PassMap passes_of(const Timeline& timeline, std::size_t stage, std::int32_t rank) const {
    PassMap passes;
    for (const Span& span : timeline.spans) {
      if (span.rank != rank || span.stream != Stream::Compute || span.microbatch < 0) continue;
      const auto chunk = chunk_of(stage, span);
      if (!chunk) continue;
      Passes& pass = passes[{*chunk, span.microbatch}];
      Extent& extent = span.phase == Phase::Forward          ? pass.forward
                       : span.phase == Phase::BackwardWeight ? pass.weight
                                                             : pass.input;
      extent.add(span.start.value(), span.end().value());
    }
    return passes;
  }

  std::optional<std::vector<GanttSlotTime>> slots_of(std::size_t stage,
                                                     const PassMap& passes) const {
    std::vector<GanttSlotTime> times;
    double reached = 0.0;
    for (const Slot& slot : schedule_.stages[stage]) {
      const auto pass = passes.find({slot.chunk, slot.microbatch});
      if (pass == passes.end()) return std::nullopt;
      const Extent extent = extent_of(slot.phase, pass->second);
      // A chunk without weights has a slot for their gradients all the same.
      const bool missing = extent.empty() && slot.phase != SlotPhase::BackwardWeight;
      if (missing) return std::nullopt;
      const double start = extent.empty() ? reached : std::max(extent.start, reached);
      times.push_back({start, std::max(start, extent.end)});
      // Both slots of a pair run at the same time.
      reached = slot.overlaps_next ? start : times.back().finish;
    }
    return times;
  }

  static Extent extent_of(SlotPhase phase, const Passes& pass) {
    if (phase == SlotPhase::Forward) return pass.forward;
    if (phase == SlotPhase::BackwardWeight) return pass.weight;
    Extent extent = pass.input;
    if (phase == SlotPhase::Backward && !pass.weight.empty())
      extent.add(pass.weight.start, pass.weight.end);
    return extent;
  }

  PipelineSchedule schedule_;
  std::vector<LayerRange> layers_;
  RankGrid grid_;
};

}  // namespace

std::optional<StageSlotTimes> stage_slots(const Timeline& timeline, const ModelSpec& model,
                                          const Plan& plan) {
  if (why_not(plan.schedule, shape_of(plan))) return std::nullopt;
  return SlotFinder(model, plan).find(timeline);
}

}  // namespace shardwright::gui
