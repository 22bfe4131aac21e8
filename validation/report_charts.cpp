#include "validation/report_charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "core/base/printable_text.hpp"
#include "core/base/quantity_text.hpp"
#include "planner/figure.hpp"

namespace shardwright::validation {
namespace {

// Okabe and Ito's palette, which colour-blind readers can tell apart (Color universal design,
// 2008).
constexpr std::array<const char*, 8> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#e69f00", "#56b4e9", "#000000", "#999999"};
constexpr std::size_t kShapes = 4;
constexpr double kChartSize = 480.0, kMargin = 56.0;
constexpr double kBinWidth = 0.05, kLastBin = 0.5;
constexpr double kBarWidth = 360.0, kBarHeight = 14.0;

// The palette again, with the communication of all axes in shades of two of its colours.
constexpr EnumArray<sim::StepPart, const char*> kPartColours{
    {"#0072b2", "#009e73", "#56b4e9", "#f0e442", "#e69f00", "#d55e00", "#a04000", "#ff8c42",
     "#cc79a7", "#8f4a73", "#6a5acd", "#999999", "#000000", "#555555"}};

const char* colour(std::size_t index) {
  return kColours[index % kColours.size()];
}

double predicted_step(const RowComparison& row) {
  return row.predicted_time.total().value();
}

double measured_step(const RowComparison& row) {
  return predicted_step(row) / (1.0 + row.error);
}

// Maps seconds to a place on an axis of kChartSize, by powers of ten.
class LogAxis {
 public:
  LogAxis(double low, double high)
      : first_(std::floor(std::log10(low))),
        last_(std::max(std::ceil(std::log10(high)), first_ + 1.0)) {}

  double at(double value) const {
    return kChartSize * (std::log10(value) - first_) / (last_ - first_);
  }
  // Powers of ten at both ends.
  int first() const { return static_cast<int>(first_); }
  int last() const { return static_cast<int>(last_); }

 private:
  double first_, last_;
};

std::string line(double x1, double y1, double x2, double y2, const char* kind) {
  return fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>)", x1,
                     y1, x2, y2, kind);
}

std::string label(double x, double y, const std::string& text, const char* anchor = "middle") {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", x, y, anchor,
                     html_escaped(text));
}

std::string grid(const LogAxis& axis) {
  std::string svg;
  for (int power = axis.first(); power <= axis.last(); ++power) {
    const double value = std::pow(10.0, power), place = axis.at(value);
    const double x = kMargin + place, y = kMargin + kChartSize - place;
    svg += line(x, kMargin, x, kMargin + kChartSize, "grid");
    svg += line(kMargin, y, kMargin + kChartSize, y, "grid");
    svg += label(x, kMargin + kChartSize + 18.0, format_time(Seconds(value)));
    svg += label(kMargin - 6.0, y + 4.0, format_time(Seconds(value)), "end");
  }
  return svg;
}

// A mark of its own for each of 32 classes: eight colours in four shapes, drawn around (x, y).
// `more` holds further attributes and the element's content.
std::string mark(double x, double y, double radius, std::size_t index, const std::string& more) {
  const std::size_t shape = index / kColours.size() % kShapes;
  const auto polygon = [&](const std::string& points) {
    return fmt::format(R"(<polygon points="{}" fill="{}"{}</polygon>)", points, colour(index),
                       more);
  };
  const double wide = 1.2 * radius;
  switch (shape) {
    case 0:
      return fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{}" fill="{}"{}</circle>)", x, y,
                         radius, colour(index), more);
    case 1:
      return polygon(fmt::format("{0:.1f},{2:.1f} {1:.1f},{2:.1f} {1:.1f},{3:.1f} {0:.1f},{3:.1f}",
                                 x - radius, x + radius, y - radius, y + radius));
    case 2:
      return polygon(fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}", x, y - wide, x + wide,
                                 y + radius, x - wide, y + radius));
    default:
      return polygon(fmt::format("{0:.1f},{2:.1f} {3:.1f},{1:.1f} {0:.1f},{4:.1f} {5:.1f},{1:.1f}",
                                 x, y, y - wide, x + wide, y + wide, x - wide));
  }
}

std::string legend(const std::map<std::string, std::size_t>& colours) {
  std::string svg;
  double y = kMargin + 10.0;
  for (const auto& [name, index] : colours) {
    svg += mark(kMargin + kChartSize + 20.0, y - 4.0, 4.0, index, ">");
    svg += label(kMargin + kChartSize + 30.0, y, name, "start");
    y += 18.0;
  }
  return svg;
}

std::string dot(const RowComparison& row, const LogAxis& axis, std::size_t colour_index) {
  return mark(
      kMargin + axis.at(measured_step(row)), kMargin + kChartSize - axis.at(predicted_step(row)),
      3.0, colour_index,
      fmt::format(R"( fill-opacity="0.6"><title>{}: measured {}, predicted {} ({} %)</title>)",
                  html_escaped(row.id), format_time(Seconds(measured_step(row)), 4),
                  format_time(Seconds(predicted_step(row)), 4), format_signed_percent(row.error)));
}

}  // namespace

std::string scatter_chart(const std::vector<const RowComparison*>& rows) {
  double low = std::numeric_limits<double>::infinity(), high = 0.0;
  std::map<std::string, std::size_t> colours;
  for (const RowComparison* row : rows) {
    low = std::min({low, measured_step(*row), predicted_step(*row)});
    high = std::max({high, measured_step(*row), predicted_step(*row)});
    colours.emplace(row->accelerator_profile, colours.size());
  }
  if (rows.empty() || low <= 0.0) return {};
  const LogAxis axis(low, high);
  std::string svg = fmt::format(
      R"(<svg viewBox="0 0 {0:.0f} {1:.0f}" width="{0:.0f}" height="{1:.0f}" role="img">)",
      kChartSize + 2.0 * kMargin + 220.0, kChartSize + 2.0 * kMargin);
  svg += grid(axis);
  svg += line(kMargin, kMargin + kChartSize, kMargin + kChartSize, kMargin, "diagonal");
  for (const RowComparison* row : rows)
    svg += dot(*row, axis, colours.at(row->accelerator_profile));
  svg += label(kMargin + kChartSize / 2.0, kMargin + kChartSize + 40.0, "measured step time");
  svg += label(kMargin, kMargin - 14.0, "predicted step time", "start");
  return svg + legend(colours) + "</svg>";
}

std::string error_histogram(const std::vector<const RowComparison*>& rows) {
  constexpr auto kBins = static_cast<int>(2.0 * kLastBin / kBinWidth);
  std::array<std::size_t, kBins> counts{};
  for (const RowComparison* row : rows) {
    const auto bin = static_cast<int>(std::floor((row->error + kLastBin) / kBinWidth));
    ++counts[static_cast<std::size_t>(std::clamp(bin, 0, kBins - 1))];
  }
  const std::size_t most = *std::max_element(counts.begin(), counts.end());
  if (most == 0) return {};
  constexpr double kHeight = 180.0;
  std::string svg = fmt::format(
      R"(<svg viewBox="0 0 {0:.0f} {1:.0f}" width="{0:.0f}" height="{1:.0f}" role="img">)",
      kChartSize + 2.0 * kMargin, kHeight + 60.0);
  const double width = kChartSize / kBins;
  for (int bin = 0; bin < kBins; ++bin) {
    const std::size_t count = counts[static_cast<std::size_t>(bin)];
    const double height = kHeight * static_cast<double>(count) / static_cast<double>(most);
    svg += fmt::format(
        R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}"><title>{} rows</title></rect>)",
        kMargin + width * bin, 20.0 + kHeight - height, width - 1.0, height, colour(0), count);
    if (bin % 4 == 0) {
      svg += label(kMargin + width * bin, 38.0 + kHeight,
                   format_signed_percent(kBinWidth * bin - kLastBin) + " %");
    }
  }
  svg += line(kMargin + kChartSize / 2.0, 10.0, kMargin + kChartSize / 2.0, 20.0 + kHeight,
              "diagonal");
  return svg + "</svg>";
}

std::string breakdown_bar(const sim::TimeBreakdown& time) {
  const double total = time.total().value();
  if (total <= 0.0) return {};
  std::string svg = fmt::format(
      R"(<svg viewBox="0 0 {0:.0f} {1:.0f}" width="{0:.0f}" height="{1:.0f}" role="img">)",
      kBarWidth, kBarHeight);
  double x = 0.0;
  for (const sim::StepPart part : enumerators<sim::StepPart>()) {
    const double share = time.of(part).value() / total;
    if (share <= 0.0) continue;
    svg += fmt::format(
        R"(<rect x="{:.2f}" y="0" width="{:.2f}" height="{:.0f}" fill="{}"><title>{}: {} %</title></rect>)",
        x, kBarWidth * share, kBarHeight, kPartColours[part], planner::part_title(part),
        format_percent(share));
    x += kBarWidth * share;
  }
  return svg + "</svg>";
}

}  // namespace shardwright::validation
