#include "cli/output/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/base/printable_text.hpp"
#include "core/base/quantity_text.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::json;

// Beyond this many, the spans of a microbatch's phase are drawn as one.
constexpr std::size_t kMostSingleSpans = 20'000;
// Times of a timeline are whole numbers of this share of it.
constexpr double kTimelineUnits = 1e6;
constexpr double kWidth = 640.0, kNameWidth = 210.0, kTextWidth = 120.0, kLine = 22.0;

std::string svg(double width, double height, const std::string& content) {
  return fmt::format(
      R"(<svg viewBox="0 0 {0:.0f} {1:.0f}" width="{0:.0f}" height="{1:.0f}" role="img">{2}</svg>)",
      width, height, content);
}

std::string label(double x, double y, const std::string& text, const char* anchor) {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", x, y, anchor,
                     html_escaped(text));
}

// An axis of `length`.
class Axis {
 public:
  Axis(double low, double high, double length, CurveAxes axes)
      : axes_(axes),
        low_(placed(low)),
        scale_(high > low ? length / (placed(high) - placed(low)) : 0.0) {}
  double at(double value) const { return scale_ * (placed(value) - low_); }

 private:
  double placed(double value) const {
    return axes_ == CurveAxes::Logarithmic ? std::log(value) : value;
  }

  CurveAxes axes_;
  double low_, scale_;
};

// The spans of a row that are drawn as one.
struct Block {
  double start = 0.0, end = 0.0;
  std::string name;
  OpKind kind = OpKind::Gemm;
  Phase phase = Phase::Forward;
  std::int32_t microbatch = -1;
  // The index of its colour.
  int shade = 0;
  // The time that its spans cover; the rest is gaps between them.
  double busy = 0.0;
};

// The colour of a plan's span depends on its phase, and that of a trace's span, which has none, on
// the category of its kernel. Communication has its own colour in both.
int shade_of(const Timeline& timeline, const Span& span) {
  if (span.kernel < 0) {
    if (span.stream != Stream::Compute) return 3;
    return span.phase == Phase::Forward ? 0 : span.phase == Phase::Optimizer ? 2 : 1;
  }
  switch (timeline.kernels[static_cast<std::size_t>(span.kernel)].category) {
    case KernelCategory::Gemm:
    case KernelCategory::Attention:
      return 1;
    case KernelCategory::Collective:
      return 3;
    case KernelCategory::MemoryCopy:
      return 2;
    default:
      return 0;
  }
}

std::string block_text(const Block& block, bool has_phase) {
  if (!has_phase) return block.name.empty() ? "several kernels" : block.name;
  std::string text = block.name.empty() ? "" : block.name + ", ";
  text += name_of(block.phase);
  return block.microbatch < 0 ? text : fmt::format("{}, microbatch {}", text, block.microbatch);
}

// Joins a span to the one before it if both are of one phase of one microbatch with hardly a gap
// between them.
bool join(std::vector<Block>& blocks, const Block& next, double largest_gap) {
  if (blocks.empty()) return false;
  Block& last = blocks.back();
  const bool same =
      last.phase == next.phase && last.microbatch == next.microbatch && last.shade == next.shade;
  if (!same || next.start - last.end > largest_gap) return false;
  last.busy += std::max(0.0, next.end - std::max(next.start, last.end));
  last.end = std::max(last.end, next.end);
  last.name.clear();
  return true;
}

// Rank, whether it is no computation, stream, and the number of a recorded stream.
using RowKey = std::tuple<std::int32_t, bool, std::string, std::int32_t>;

std::map<RowKey, std::vector<Block>> rows_of(const Timeline& timeline, double end) {
  std::map<RowKey, std::vector<Block>> rows;
  const bool joins = timeline.spans.size() > kMostSingleSpans;
  std::vector<const Span*> ordered;
  for (const Span& span : timeline.spans) ordered.push_back(&span);
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const Span* a, const Span* b) { return a->start < b->start; });
  for (const Span* span : ordered) {
    std::vector<Block>& blocks =
        rows[{span->rank, span->stream != Stream::Compute, name_of(span->stream), span->queue}];
    const Block next{span->start.value(),
                     span->end().value(),
                     span->name,
                     span->kind,
                     span->phase,
                     span->microbatch,
                     shade_of(timeline, *span),
                     span->duration.value()};
    if (!joins || !join(blocks, next, 1e-3 * end)) blocks.push_back(next);
  }
  return rows;
}

json timeline_data(const Timeline& timeline) {
  double end = 0.0;
  for (const Span& span : timeline.spans) end = std::max(end, span.end().value());
  std::map<std::int32_t, std::string> labels;
  for (const TimelineRank& rank : timeline.ranks) labels[rank.rank] = rank.label;
  std::map<std::string, std::size_t> names;
  json data = {
      {"end", end}, {"units", kTimelineUnits}, {"names", json::array()}, {"rows", json::array()}};
  const auto unit_of = [&](double time) { return std::llround(time / end * kTimelineUnits); };
  for (const auto& [key, blocks] : rows_of(timeline, end)) {
    json spans = json::array();
    for (const Block& block : blocks) {
      const std::string name = block_text(block, timeline.kernels.empty());
      const std::size_t index = names.emplace(name, names.size()).first->second;
      if (index == data["names"].size()) data["names"].push_back(name);
      for (const std::int64_t value :
           {unit_of(block.start), unit_of(block.end), static_cast<long long>(index),
            0LL + block.shade, unit_of(block.busy)})
        spans.push_back(value);
    }
    std::string stream = std::get<2>(key);
    std::replace(stream.begin(), stream.end(), '_', ' ');
    if (std::get<3>(key) >= 0) stream = fmt::format("stream {}", std::get<3>(key));
    data["rows"].push_back(
        {{"label", labels[std::get<0>(key)] + ": " + stream}, {"spans", std::move(spans)}});
  }
  return data;
}

// "</script" would end the script that the data stand in, and "<!--<script" would hide its end.
std::string script_text(const json& data) {
  const std::string text = data.dump(-1, ' ', true);
  std::string escaped;
  for (const char c : text) c == '<' ? escaped += "\\u003c" : escaped += c;
  return escaped;
}

constexpr const char* kTimelineScript = R"js(
(function (box, data) {
  const canvas = box.querySelector("canvas"), tip = box.querySelector("output"), row = 18, left = 190, top = 20;
  const colours = ["#56b4e9", "#0072b2", "#999999", "#d55e00"];
  // A span is its start, end, name, colour and busy time, which is shorter where it stands for
  // several.
  const start = 0, stop = 1, name = 2, colour = 3, busy = 4, members = 5, narrow = 3, faintest = 0.15;
  let from = 0, to = data.units, grip = null;
  const width = () => box.clientWidth, scale = () => (width() - left) / (to - from);
  const time = (units) => {
    const seconds = units / data.units * data.end;
    if (units <= 0) return "0 s";
    for (const [unit, name] of [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]])
      if (Math.abs(seconds) >= unit) return (seconds / unit).toPrecision(4) + " " + name;
    return (seconds / 1e-9).toPrecision(3) + " ns";
  };
  function draw() {
    const ratio = devicePixelRatio || 1, height = top + row * data.rows.length, pen = canvas.getContext("2d");
    canvas.width = width() * ratio; canvas.height = height * ratio; canvas.style.height = height + "px";
    pen.scale(ratio, ratio); pen.font = "12px system-ui, sans-serif"; pen.textBaseline = "middle";
    const ink = getComputedStyle(box).color;
    data.rows.forEach((each, index) => {
      const y = top + row * index;
      pen.fillStyle = ink; pen.fillText(each.label, 0, y + row / 2, left - 8);
      // How strong a colour is says how much of the time is busy. Narrow spans add up in the
      // columns of pixels that they share, which stay faintly visible where they cover next to
      // nothing.
      const columns = colours.map(() => new Float32Array(Math.ceil(width() - left) + 1));
      for (let i = 0; i < each.spans.length; i += members) {
        const first = each.spans[i + start], end = each.spans[i + stop];
        if (end < from || first > to) continue;
        const x = Math.max(0, (first - from) * scale()), until = Math.min((end - from) * scale(), width() - left);
        const share = end > first ? Math.min(1, each.spans[i + busy] / (end - first)) : 1, painted = each.spans[i + colour];
        if (until - x > narrow) {
          pen.globalAlpha = Math.max(share, faintest); pen.fillStyle = colours[painted];
          pen.fillRect(left + x, y + 2, until - x - 0.5, row - 4);
        } else {
          for (let column = Math.floor(x); column <= until; ++column)
            columns[painted][column] += share * (Math.min(until, column + 1) - Math.max(x, column)) + 1e-6;
        }
      }
      columns.forEach((covered, painted) => {
        pen.fillStyle = colours[painted];
        covered.forEach((part, column) => {
          if (part == 0) return;
          pen.globalAlpha = Math.min(1, Math.max(part, faintest)); pen.fillRect(left + column, y + 2, 1, row - 4);
        });
      });
      pen.globalAlpha = 1;
    });
    pen.globalCompositeOperation = "destination-over"; pen.fillStyle = ink;
    const marks = Math.max(1, Math.min(5, Math.floor((width() - left) / 90)));
    for (let mark = 0; mark <= marks; ++mark) {
      const units = from + (to - from) * mark / marks, x = left + (units - from) * scale();
      pen.globalAlpha = 0.2; pen.fillRect(Math.min(x, width() - 1), top, 1, height - top); pen.globalAlpha = 1;
      pen.textAlign = mark == marks ? "right" : mark == 0 ? "left" : "center"; pen.fillText(time(units), x, top / 2);
    }
  }
  function limit() {
    const span = Math.min(Math.max(to - from, 20), data.units);
    from = Math.min(Math.max(from, 0), data.units - span); to = from + span; draw();
  }
  canvas.addEventListener("wheel", (event) => {
    const at = from + (event.offsetX - left) / scale(), factor = Math.exp(event.deltaY / 500);
    from = at - (at - from) * factor; to = at + (to - at) * factor; limit(); event.preventDefault();
  }, {passive: false});
  canvas.addEventListener("pointerdown", (event) => { grip = event.offsetX; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointerup", () => { grip = null; });
  canvas.addEventListener("dblclick", () => { from = 0; to = data.units; draw(); });
  canvas.addEventListener("pointermove", (event) => {
    if (grip !== null) {
      const shift = (grip - event.offsetX) / scale(); grip = event.offsetX; from += shift; to += shift; limit();
    }
    const each = data.rows[Math.floor((event.offsetY - top) / row)], at = from + (event.offsetX - left) / scale();
    tip.textContent = "";
    if (!each || event.offsetX < left) return;
    for (let i = 0; i < each.spans.length; i += members) {
      const first = each.spans[i + start], end = each.spans[i + stop], gaps = end - first - each.spans[i + busy];
      if (first <= at + 2 / scale() && at - 2 / scale() <= end)
        tip.textContent = each.label + ": " + data.names[each.spans[i + name]] + ", " + time(end - first) +
          (gaps > 1 ? ", of which " + time(each.spans[i + busy]) + " are busy," : "") + " from " + time(first);
    }
  });
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
})
)js";

}  // namespace

std::string bars_figure(const std::vector<Bar>& bars) {
  double most = 0.0;
  for (const Bar& bar : bars) most = std::max(most, bar.value);
  if (most <= 0.0) return {};
  std::string content;
  double y = 0.0;
  for (const Bar& bar : bars) {
    const double length = (kWidth - kNameWidth - kTextWidth) * std::max(bar.value, 0.0) / most;
    content += label(kNameWidth - 8.0, y + 15.0, bar.name, "end");
    content +=
        fmt::format(R"(<rect x="{:.0f}" y="{:.0f}" width="{:.1f}" height="{:.0f}" class="bar"/>)",
                    kNameWidth, y + 3.0, length, kLine - 6.0);
    content += label(kNameWidth + length + 6.0, y + 15.0, bar.text, "start");
    y += kLine;
  }
  return svg(kWidth, y, content);
}

std::string curve_figure(const std::vector<CurvePoint>& points, const std::string& x_title,
                         const std::string& y_title, CurveAxes axes) {
  if (points.empty()) return {};
  // More of them would lie on each other.
  constexpr std::size_t kMostDots = 60, kMostLabels = 12;
  constexpr double kHeight = 300.0, kLeft = 90.0, kTop = 30.0, kBottom = 50.0, kRight = 60.0;
  const auto [left, right] =
      std::minmax_element(points.begin(), points.end(), [](auto& a, auto& b) { return a.x < b.x; });
  const auto [low, high] =
      std::minmax_element(points.begin(), points.end(), [](auto& a, auto& b) { return a.y < b.y; });
  const Axis x_axis(left->x, right->x, kWidth - kLeft - kRight, axes),
      y_axis(low->y, high->y, kHeight - kTop - kBottom, axes);
  const std::size_t labelled = 1 + (points.size() - 1) / kMostLabels;
  std::string path, dots;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const CurvePoint& point = points[i];
    const double x = kLeft + x_axis.at(point.x), y = kHeight - kBottom - y_axis.at(point.y);
    path += fmt::format("{:.1f},{:.1f} ", x, y);
    if (i % labelled == 0) dots += label(x, kHeight - kBottom + 20.0, point.x_text, "middle");
    if (points.size() > kMostDots) continue;
    dots += fmt::format(
        R"(<circle cx="{:.1f}" cy="{:.1f}" r="4" class="bar"><title>{}: {}</title></circle>)", x, y,
        html_escaped(point.x_text), html_escaped(point.y_text));
  }
  std::string content = fmt::format(R"(<polyline points="{}" class="curve"/>)", path) + dots;
  for (const auto& end : {low, high})
    content += label(kLeft - 12.0, kHeight - kBottom - y_axis.at(end->y) + 4.0, end->y_text, "end");
  const std::string scale = axes == CurveAxes::Logarithmic ? " (logarithmic)" : "";
  content +=
      label(kLeft + (kWidth - kLeft - kRight) / 2.0, kHeight - 8.0, x_title + scale, "middle");
  content += label(kLeft - 12.0, 14.0, y_title + scale, "start");
  return svg(kWidth, kHeight, content);
}

std::string timeline_figure(const Timeline& timeline) {
  if (timeline.spans.empty()) return {};
  return fmt::format(
      "<div "
      "class=\"timeline\"><canvas></canvas><output></output></"
      "div>\n<script>{}(document.currentScript."
      "previousElementSibling, {});</script>",
      kTimelineScript, script_text(timeline_data(timeline)));
}

}  // namespace shardwright::cli
