#include "gui/timeline/span_text.hpp"

#include <QStringList>
#include <algorithm>

#include "core/program/rank_grid.hpp"
#include "core/spec/pools.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

QString spaced(const char* name) {
  return to_qstring(name).replace(u'_', u' ');
}

// Names of templates have thousands of letters.
constexpr std::size_t kLongestKernel = 160;

void add_rates(const Span& span, const DeviceLimits& limits, std::vector<TipLine>& lines) {
  const bool timed = span.duration.value() > 0.0;
  if (span.flop.value() > 0.0 && timed) {
    const FlopPerSecond rate = span.flop / span.duration;
    QString text = flop_rate_text(rate);
    if (limits.matrix_peak.value() > 0.0)
      text += u" (%1 of the peak)"_s.arg(percent_text(rate / limits.matrix_peak));
    lines.push_back({u"rate"_s, text});
  }
  if (span.bytes.value() <= 0.0) return;
  lines.push_back({u"data"_s, bytes_text(span.bytes)});
  if (!timed) return;
  lines.push_back({u"algorithm bandwidth"_s, bandwidth_text(span.bytes / span.duration)});
  if (limits.scale_up.value() > 0.0)
    lines.push_back({u"link bandwidth"_s,
                     u"%1 inside, %2 between nodes"_s.arg(bandwidth_text(limits.scale_up),
                                                          bandwidth_text(limits.between_nodes))});
}

DeviceLimits limits_on(const ClusterSpec& cluster, Precision precision) {
  const NodeSpec& node = cluster.node;
  const double nics =
      static_cast<double>(node.nic.per_node) / static_cast<double>(node.accelerators);
  return {cluster.accelerator.memory, cluster.accelerator.matrix.of(precision),
          node.scale_up.bandwidth, node.nic.bandwidth * nics};
}

void add_before(const TimelineTracks& tracks, SpanRef ref, std::vector<TipLine>& lines) {
  const Span& span = tracks.span(ref);
  QString text = to_qstring(span.name);
  if (span.layer >= 0) text += u", layer %1"_s.arg(span.layer);
  if (span.microbatch >= 0) text += u", microbatch %1"_s.arg(span.microbatch);
  lines.push_back({u"waited for"_s, text});
}

void add_counterpart(const TimelineTracks& tracks, SpanRef ref, std::vector<TipLine>& lines) {
  const auto other_ref = tracks.counterpart(ref);
  if (!other_ref) return;
  const Span& own = tracks.span(ref);
  const Span& other = tracks.span(*other_ref);
  // The prediction comes first: the measurement is given as a share of it.
  const Span& first = ref.side == 0 ? own : other;
  const Span& second = ref.side == 0 ? other : own;
  QString text = time_text(other.duration);
  if (first.duration.value() > 0.0)
    text += u" (%1 %2 of %3)"_s.arg(tracks.side_title(1),
                                    signed_percent_text(second.duration / first.duration - 1.0),
                                    tracks.side_title(0));
  lines.push_back({tracks.side_title(other_ref->side), text});
}

}  // namespace

DeviceLimits RankLimits::of(std::int32_t rank) const {
  if (stages.empty()) return {};
  const auto stage = static_cast<std::size_t>(std::max(0, rank) / ranks_of_stage);
  return stages[std::min(stage, stages.size() - 1)];
}

RankLimits limits_of(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  RankLimits limits;
  if (!names_pools(plan)) {
    limits.stages = {limits_on(scenario.cluster, plan.precision)};
    return limits;
  }
  std::vector<DeviceLimits> of_stages;
  for (std::int32_t stage = 0; stage < count_stages(plan); ++stage)
    of_stages.push_back(limits_on(stage_cluster(scenario.cluster, plan, stage), plan.precision));
  // So many ranks after each other lie on one pool.
  limits.ranks_of_stage = plan.tp * plan.cp;
  const RankGrid grid(plan);
  for (std::int64_t rank = 0; rank < plan.world_size(); rank += limits.ranks_of_stage)
    limits.stages.push_back(of_stages[static_cast<std::size_t>(grid.locate(rank).stage)]);
  return limits;
}

QString span_tool_tip(const TimelineTracks& tracks, SpanRef ref, const DeviceLimits& limits,
                      std::optional<SpanRef> before) {
  const Span& span = tracks.span(ref);
  std::vector<TipLine> lines;
  const Timeline& timeline = *tracks.timelines()[ref.side];
  lines.push_back({u"kind"_s, kind_title(timeline, span)});
  if (span.kernel >= 0) {
    const TracedKernel& kernel = timeline.kernels[static_cast<std::size_t>(span.kernel)];
    if (!kernel.op.empty()) lines.push_back({u"operator"_s, to_qstring(kernel.op)});
    lines.push_back({u"kernel"_s, to_qstring(short_kernel_name(kernel.name, kLongestKernel))});
    lines.push_back({u"stream"_s, QString::number(span.queue)});
  } else {
    lines.push_back({u"phase"_s, spaced(name_of(span.phase))});
  }
  if (span.layer >= 0) lines.push_back({u"layer"_s, QString::number(span.layer)});
  if (span.microbatch >= 0) lines.push_back({u"microbatch"_s, QString::number(span.microbatch)});
  lines.push_back({u"start"_s, time_text(span.start)});
  QString time = time_text(span.duration);
  if (tracks.end() > 0.0)
    time += u" (%1 of the step)"_s.arg(share_text(span.duration.value() / tracks.end()));
  lines.push_back({tracks.side_title(ref.side), time});
  add_counterpart(tracks, ref, lines);
  if (span.group) lines.push_back({u"group"_s, spaced(name_of(*span.group))});
  if (span.peer >= 0) lines.push_back({u"peer"_s, QString::number(span.peer)});
  if (before) add_before(tracks, *before, lines);
  add_rates(span, limits, lines);
  return tool_tip(to_qstring(span.name), tracks.source(ref.side), lines);
}

QString memory_tool_tip(const MemoryRow& row, const TipSource& source, Bytes capacity,
                        std::optional<double> time) {
  const auto text_of = [&](const MemoryPoint& point) {
    QString all = bytes_text(Bytes(point.bytes));
    // A measured rank may be one of hardware that no profile describes; the peak is all then.
    const bool is_known = capacity > Bytes();
    const double whole = is_known ? capacity.value() : row.peak.bytes;
    if (whole > 0.0)
      all += u" (%1 of the %2)"_s.arg(percent_text(point.bytes / whole),
                                      is_known ? u"capacity"_s : u"peak"_s);
    return row.has_base()
               ? u"%1, %2 of it allocated"_s.arg(all, bytes_text(Bytes(point.bytes - point.base)))
               : all;
  };
  std::vector<TipLine> lines;
  if (time) lines.push_back({u"at "_s + time_text(Seconds(*time)), text_of(row.at(*time))});
  lines.push_back({u"peak, at "_s + time_text(Seconds(row.peak.time)), text_of(row.peak)});
  if (row.has_base()) {
    lines.push_back({u"allocated"_s,
                     u"parameters, gradients, optimizer states and the tensors of the step, "
                     "which Run draws alone"_s});
    lines.push_back({u"not allocated"_s, u"context, communication buffers, fragmentation"_s});
  }
  return tool_tip(u"memory of the rank"_s, source, lines);
}

QString memory_line(const MemoryRow& row) {
  const QString peak = u"peak "_s + bytes_text(Bytes(row.peak.bytes));
  if (!row.has_base()) return peak;
  return u"%1, allocated %2"_s.arg(peak, bytes_text(Bytes(row.peak.bytes - row.peak.base)));
}

QString span_line(const TimelineTracks& tracks, SpanRef ref) {
  const Span& span = tracks.span(ref);
  QStringList parts = {to_qstring(span.name)};
  parts.append(span.kernel < 0 ? spaced(name_of(span.phase))
                               : kind_title(*tracks.timelines()[ref.side], span));
  if (span.layer >= 0) parts.append(u"layer %1"_s.arg(span.layer));
  if (span.microbatch >= 0) parts.append(u"mb %1"_s.arg(span.microbatch));
  parts.append(time_text(span.duration));
  return parts.join(u" · "_s);
}

ShownSpans shown_spans(const TimelineTracks& tracks, double from, double to) {
  ShownSpans shown{tracks.timelines(), {}, {}};
  for (std::size_t side = 0; tracks.compares_same_origin() && side < shown.timelines.size(); ++side)
    shown.files.append(tracks.side_title(side));
  for (const Track& track : tracks.tracks()) {
    if (track.kind != TrackKind::Spans) continue;
    const SpanRow& row = tracks.rows()[track.row];
    const PositionRange range = row.visible(from, to);
    for (std::size_t i = range.first; i < range.last; ++i) {
      if (row.spans()[i].end >= from) shown.spans.push_back(tracks.ref(track, i));
    }
  }
  return shown;
}

TextTable span_table(const ShownSpans& shown, const std::stop_token& stop) {
  TextTable table;
  for (const char* name : {"Origin", "Rank", "Stream", "Peer", "Op", "Kind", "Phase", "Layer",
                           "Microbatch", "Start (s)", "Duration (s)", "Group", "Bytes", "FLOP"})
    table.header.append(to_qstring(name));
  if (!shown.files.isEmpty()) table.header.insert(1, u"File"_s);
  const auto number_or_nothing = [](std::int32_t number) {
    return number < 0 ? QString() : QString::number(number);
  };
  for (const SpanRef ref : shown.spans) {
    if (stop.stop_requested()) break;
    const Timeline& timeline = *shown.timelines[ref.side];
    const Span& span = timeline.spans[ref.index];
    table.rows.push_back(
        {title_of(timeline.origin), QString::number(span.rank), spaced(name_of(span.stream)),
         number_or_nothing(span.peer), to_qstring(span.name), kind_title(timeline, span),
         span.kernel < 0 ? spaced(name_of(span.phase)) : QString(), number_or_nothing(span.layer),
         number_or_nothing(span.microbatch), exact_text(span.start.value()),
         exact_text(span.duration.value()), span.group ? spaced(name_of(*span.group)) : QString(),
         exact_text(span.bytes.value()), exact_text(span.flop.value())});
    if (!shown.files.isEmpty()) table.rows.back().insert(1, shown.files[ref.side]);
  }
  return table;
}

}  // namespace shardwright::gui
