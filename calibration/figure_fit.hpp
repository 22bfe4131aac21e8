// Fits figures of a profile: numbers that can be read from and set in a spec.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "calibration/least_squares.hpp"
#include "core/base/units.hpp"

namespace shardwright::calibration {

// A figure: its pointer, its physical limits, and how it is read and set.
template <class Spec>
struct Figure {
  std::string pointer;
  double least = 0.0, most = 1.0;
  std::function<double(const Spec&)> get;
  std::function<void(Spec&, double)> set;
  // Both are as in least_squares.hpp.
  double widest = kWidest, widest_against = kWidest;
};

template <class Spec>
using Figures = std::vector<Figure<Spec>>;

// A figure that `reach` finds in the spec: a double, or a quantity by its value.
template <class Spec, class Reach>
Figure<Spec> figure_at(std::string pointer, double least, double most, Reach reach) {
  return {std::move(pointer), least, most,
          [reach](const Spec& spec) {
            Spec copy = spec;
            auto& found = reach(copy);
            if constexpr (requires { found.value(); }) {
              return found.value();
            } else {
              return found;
            }
          },
          [reach](Spec& spec, double value) {
            auto& found = reach(spec);
            found = std::remove_reference_t<decltype(found)>(value);
          }};
}

// Log residuals of a spec.
template <class Spec>
using SpecResiduals = std::function<std::vector<double>(const Spec&)>;

// Fits the figures and sets those that the data determine in `spec`.
template <class Spec>
FitResult fit_figures(Spec& spec, const Figures<Spec>& figures,
                      const SpecResiduals<Spec>& residuals) {
  std::vector<FitParameter> parameters;
  for (const Figure<Spec>& figure : figures) {
    const double value = std::clamp(figure.get(spec), figure.least, figure.most);
    parameters.push_back(
        {figure.pointer, value, figure.least, figure.most, figure.widest, figure.widest_against});
  }
  FitResult result = fit(parameters, [&](const std::vector<double>& values) {
    Spec changed = spec;
    for (std::size_t i = 0; i < values.size(); ++i) figures[i].set(changed, values[i]);
    return residuals(changed);
  });
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (is_determined(result.parameters[i].verdict))
      figures[i].set(spec, result.parameters[i].value);
  }
  return result;
}

// True if the fit of fewer figures explains as much as that of more, within a tenth and the noise
// of timings.
inline bool explains_as_much(const std::vector<double>& fewer, const std::vector<double>& more) {
  constexpr double kShare = 1.1, kNothing = 1e-3;
  double of_fewer = 0.0, of_more = 0.0;
  for (const double residual : fewer) of_fewer += std::abs(residual);
  for (const double residual : more) of_more += std::abs(residual) + kNothing;
  return of_fewer <= kShare * of_more;
}

// Fits the figures. If the data do not separate the first one from the others, and changing it
// alone explains them as well, the others stay.
template <class Spec>
FitResult fit_first_figure_first(Spec& spec, const Figures<Spec>& figures,
                                 const SpecResiduals<Spec>& residuals) {
  const Spec start = spec;
  FitResult all = fit_figures<Spec>(spec, figures, residuals);
  if (all.parameters.front().verdict != FitVerdict::Undetermined) return all;
  Spec changed = start;
  FitResult first = fit_figures<Spec>(changed, {figures.front()}, residuals);
  if (!explains_as_much(first.residuals_after, all.residuals_after)) return all;
  spec = changed;
  for (std::size_t i = 1; i < figures.size(); ++i) {
    FittedParameter& stays = first.parameters.emplace_back(all.parameters[i]);
    stays = {stays.name, stays.before, stays.before, 0.0, 0.0, FitVerdict::Undetermined, 0.0};
  }
  return first;
}

}  // namespace shardwright::calibration
