// The figures of the papers that introduced the schedules.
#pragma once

#include <algorithm>

#include "core/schedule/pipeline_schedule.hpp"

namespace shardwright {

// The most activations in flight on the worst stage as published, in activations of one microbatch
// in one chunk. An activation is held from its forward until its weight gradient is done, since
// both backward halves read it.
inline std::int64_t activation_bound(ScheduleKind kind, const ScheduleShape& shape) {
  const std::int64_t p = shape.stages, m = shape.microbatches;
  switch (kind) {
    case ScheduleKind::GPipe:
      return m;
    case ScheduleKind::OneFOneB:
      return std::min(p, m);
    case ScheduleKind::Interleaved: {
      // The first stage holds its warm-up and one more.
      const std::int64_t warmup = shape.chunks == 1 ? p - 1 : 2 * (p - 1) + (shape.chunks - 1) * p;
      return std::min(warmup + 1, shape.chunks * m);
    }
    case ScheduleKind::ZbH1:
      return std::min(p, m);
    case ScheduleKind::ZbH2:
      return std::min(2 * (p - 1) + 1, m);
    case ScheduleKind::ZbV:
      return 2 * std::min(p, m);
    case ScheduleKind::DualPipe:
      return p + 1;
  }
  return 0;
}

// The published bubble: idle time of the worst stage between the start of its first slot and the
// end of its last, where all chunks take the same time and communication is free. Stages of ZB-H2
// and ZB-V start and end at different times, which only pays off if the optimizer steps without
// waiting for all stages (post-validation, arXiv 2401.10241 section 4).
//
// With p stages, m microbatches and F, B, W the times of one chunk (B the input gradient alone),
// never below 0:
//
//   schedule     bubble           exact where                    source
//   GPipe        (p-1)(F+B+W)     always                         arXiv 2104.04473
//   1F1B         (p-1)(F+B+W)     always                         arXiv 2104.04473
//   Interleaved  (p-1)(F+B+W)     always                         arXiv 2104.04473
//   ZB-H1        (p-1)(F+B-W)     W <= F, W <= B, m >= p         arXiv 2401.10241
//   ZB-H2        (p-1)(F+B-2W)    W <= F, W <= B, m >= 2p-1      arXiv 2401.10241
//   ZB-V         0                F = B = W, m >= 2p-1           arXiv 2401.10241
//   DualPipe     (p/2-1)(F+2B-W)  F <= B, W <= B                 arXiv 2412.19437
//
// Elsewhere it is a lower bound. DualPipe's figure takes F+B+W for a forward-backward pair (pairs
// gain nothing), and holds where pairs run as one (schedule_timing.hpp): whoever passes on the
// result of a pair's forward before its backward has ended stays below.
inline Seconds published_bubble(ScheduleKind kind, const ScheduleShape& shape,
                                const ChunkTimes& times) {
  const auto stages = static_cast<double>(shape.stages);
  const Seconds forward = times.forward, input = times.backward_input;
  const Seconds weight = times.backward_weight;
  const auto of_stages = [](double count, Seconds each) {
    return std::max(Seconds(0.0), count * each);
  };
  switch (kind) {
    case ScheduleKind::GPipe:
    case ScheduleKind::OneFOneB:
    case ScheduleKind::Interleaved:
      return of_stages(stages - 1.0, forward + input + weight);
    case ScheduleKind::ZbH1:
      return of_stages(stages - 1.0, forward + input - weight);
    case ScheduleKind::ZbH2:
      return of_stages(stages - 1.0, forward + input - 2.0 * weight);
    case ScheduleKind::ZbV:
      return Seconds(0.0);
    case ScheduleKind::DualPipe:
      return of_stages(stages / 2.0 - 1.0, forward + 2.0 * input - weight);
  }
  return Seconds(0.0);
}

}  // namespace shardwright
