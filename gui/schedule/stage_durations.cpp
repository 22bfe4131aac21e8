#include "gui/schedule/stage_durations.hpp"

#include <algorithm>

#include "core/lowering/shard_shape.hpp"
#include "core/program/rank_grid.hpp"
#include "gui/models/shown_ranks.hpp"

namespace shardwright::gui {
namespace {

struct ChunkSum {
  double forward = 0.0, input = 0.0, weight = 0.0;
};

class DurationSums {
 public:
  DurationSums(const ModelSpec& model, const Plan& plan)
      : schedule_(make_schedule(plan.schedule, shape_of(plan))),
        layers_(split_layers(model, plan)),
        grid_(plan) {
    for (const auto& chunks : schedule_.position) sums_.emplace_back(chunks.size());
  }

  void add(const Timeline& timeline) {
    for (const auto& [stage, rank] : first_ranks(timeline, grid_)) {
      std::vector<const Span*> compute;
      for (const Span& span : timeline.spans) {
        if (span.rank == rank && span.stream == Stream::Compute) compute.push_back(&span);
      }
      std::stable_sort(compute.begin(), compute.end(),
                       [](const Span* a, const Span* b) { return a->start < b->start; });
      add_stage(static_cast<std::size_t>(stage), compute);
    }
  }

  std::optional<StageChunkTimes> mean() const {
    StageChunkTimes times;
    for (std::size_t s = 0; s < sums_.size(); ++s) {
      std::vector<ChunkTimes>& of_stage = times.emplace_back();
      for (std::size_t c = 0; c < sums_[s].size(); ++c) {
        const ChunkSum& sum = sums_[s][c];
        const auto route = static_cast<std::size_t>(schedule_.route[s][c]);
        const double count = schedule_.routes[route].microbatches.count;
        if (sum.forward <= 0.0 || sum.input + sum.weight <= 0.0 || count <= 0.0)
          return std::nullopt;
        of_stage.push_back({Seconds(sum.forward / count), Seconds(sum.input / count),
                            Seconds(sum.weight / count)});
      }
    }
    return times;
  }

 private:
  // Ops of one chunk and microbatch in a row, all of the forward pass or none.
  struct Run {
    std::size_t chunk = 0;
    std::int32_t microbatch = -1;
    bool forward = false;
    double start = 0.0, end = 0.0;
    double input = 0.0, weight = 0.0;  // of the ops
  };

  // The embedding comes before the first layer, the head after the last one.
  std::size_t position_of(std::int32_t layer) const {
    const auto end = std::find_if(layers_.begin(), layers_.end(), [&](const LayerRange& range) {
      return layer < range.first + range.count;
    });
    return static_cast<std::size_t>(std::min(end, layers_.end() - 1) - layers_.begin());
  }

  std::optional<std::size_t> chunk_of(std::size_t stage, const Span& span) const {
    const std::size_t position = position_of(span.layer);
    for (std::size_t c = 0; c < schedule_.position[stage].size(); ++c) {
      const auto route = static_cast<std::size_t>(schedule_.route[stage][c]);
      const MicrobatchRange& range = schedule_.routes[route].microbatches;
      if (static_cast<std::size_t>(schedule_.position[stage][c]) == position &&
          span.microbatch >= range.first && span.microbatch < range.first + range.count)
        return c;
    }
    return std::nullopt;
  }

  void add_stage(std::size_t stage, const std::vector<const Span*>& compute) {
    Run run;
    for (const Span* span : compute) {
      const auto chunk =
          span->microbatch >= 0 ? chunk_of(stage, *span) : std::optional<std::size_t>();
      const bool forward = span->phase == Phase::Forward;
      if (!chunk || *chunk != run.chunk || span->microbatch != run.microbatch ||
          forward != run.forward) {
        finish(stage, run);
        run = {};
        if (!chunk) continue;
        run = {*chunk, span->microbatch, forward, span->start.value(), span->start.value()};
      }
      run.end = std::max(run.end, span->end().value());
      (span->phase == Phase::BackwardWeight ? run.weight : run.input) += span->duration.value();
    }
    finish(stage, run);
  }

  void finish(std::size_t stage, const Run& run) {
    if (run.microbatch < 0) return;
    ChunkSum& sum = sums_[stage][run.chunk];
    const double length = run.end - run.start, busy = run.input + run.weight;
    if (run.forward) {
      sum.forward += length;
    } else if (busy > 0.0) {
      sum.input += length * run.input / busy;
      sum.weight += length * run.weight / busy;
    }
  }

  PipelineSchedule schedule_;
  std::vector<LayerRange> layers_;
  RankGrid grid_;
  std::vector<std::vector<ChunkSum>> sums_;  // by stage and chunk
};

}  // namespace

std::optional<StageChunkTimes> stage_durations(const Timeline& timeline, const ModelSpec& model,
                                               const Plan& plan) {
  if (why_not(plan.schedule, shape_of(plan))) return std::nullopt;
  DurationSums sums(model, plan);
  sums.add(timeline);
  return sums.mean();
}

}  // namespace shardwright::gui
