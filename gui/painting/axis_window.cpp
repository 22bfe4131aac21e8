#include "gui/painting/axis_window.hpp"

#include <QLocale>
#include <algorithm>
#include <cmath>

#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

struct Unit {
  double seconds;
  const char* name;
};

// The unit in which neighbouring ticks differ by at least a thousandth.
Unit unit_of(double step) {
  if (step >= 0.0999) return {1.0, "s"};
  if (step >= 0.999e-6) return {1e-3, "ms"};
  return {1e-6, "µs"};
}

// The smallest of 1, 2 and 5 times a power of ten that is not below `least`.
double round_step(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1.0 - 1e-9)) return factor * power;
  }
  return 10.0 * power;
}

}  // namespace

AxisWindow AxisWindow::whole(double end) {
  const double limit = std::isfinite(end) ? std::max(end, kShortestWindow) : 1.0;
  return {.from = 0.0, .to = limit, .limit = limit};
}

void AxisWindow::show(double first, double last) {
  const double wanted = std::clamp(last - first, std::min(kShortestWindow, limit), limit);
  const double middle = 0.5 * (first + last);
  from = std::clamp(middle - 0.5 * wanted, 0.0, limit - wanted);
  to = from + wanted;
}

void AxisWindow::zoom_about(double centre, double factor) {
  const double wanted = std::clamp(length() / factor, std::min(kShortestWindow, limit), limit);
  const double share = std::clamp((centre - from) / length(), 0.0, 1.0);
  from = std::clamp(centre - share * wanted, 0.0, limit - wanted);
  to = from + wanted;
}

void AxisWindow::pan(double distance) {
  const double shown = length();
  from = std::clamp(from + distance, 0.0, limit - shown);
  to = from + shown;
}

std::vector<TimeTick> time_ticks(const AxisWindow& window, double width, double spacing) {
  std::vector<TimeTick> ticks;
  if (width < 1.0 || window.length() <= 0.0) return ticks;
  const double step = round_step(window.length() * std::min(1.0, spacing / width));
  const Unit unit = unit_of(step);
  const int decimals =
      std::clamp(static_cast<int>(std::ceil(-std::log10(step / unit.seconds) - 1e-6)), 0, 9);
  const QLocale locale(QLocale::English);
  const auto first = static_cast<std::int64_t>(std::ceil(window.from / step - 1e-9));
  const auto last = static_cast<std::int64_t>(std::floor(window.to / step + 1e-9));
  for (std::int64_t i = first; i <= last; ++i) {
    const double time = static_cast<double>(i) * step;
    ticks.push_back({time, locale.toString(time / unit.seconds, 'f', decimals) + u" "_s +
                               to_qstring(unit.name)});
  }
  return ticks;
}

}  // namespace shardwright::gui
