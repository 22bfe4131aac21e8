// Fits figures of a profile: numbers that can be read from and set in a spec.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/units.hpp"
#include "sim/calibration/least_squares.hpp"

namespace shardwright::sim {

// Where a figure stands, its physical limits, and how it is read and set.
template <class Spec>
struct Figure {
  std::string pointer;
  double least = 0.0, most = 1.0;
  std::function<double(const Spec&)> get;
  std::function<void(Spec&, double)> set;
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
    parameters.push_back({figure.pointer, value, figure.least, figure.most});
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

// The same, but the first figure on its own before: where the data cannot tell the figures apart it
// is the one that moves, and the others stay. Not where the data of all figures push it to a limit:
// what it says on its own stands for another then.
template <class Spec>
FitResult fit_first_figure_first(Spec& spec, const Figures<Spec>& figures,
                                 const SpecResiduals<Spec>& residuals) {
  const Spec start = spec;
  const FitResult first = fit_figures<Spec>(spec, {figures.front()}, residuals);
  FitResult result = fit_figures<Spec>(spec, figures, residuals);
  if (result.parameters.front().verdict == FitVerdict::PushedToLimit) {
    spec = start;
    return fit_figures<Spec>(spec, figures, residuals);
  }
  FittedParameter& main = result.parameters.front();
  if (!is_determined(main.verdict) && is_determined(first.parameters.front().verdict)) {
    const double value = main.value;
    main = first.parameters.front();
    main.value = value;
  }
  main.before = first.parameters.front().before;
  result.residuals_before = first.residuals_before;
  return result;
}

}  // namespace shardwright::sim
