#include "planner/figure.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/quantity_text.hpp"

namespace shardwright::planner {
namespace {

struct PartNames {
  const char* title;
  const char* text;
  const char* within;
};

constexpr EnumArray<sim::StepPart, PartNames> kPartNames{
    {{{"GEMMs", "GEMMs", "in GEMMs"},
      {"attention", "attention", "in attention"},
      {"memory-bound kernels", "memory-bound kernels", "in the layers"},
      {"optimizer", "the optimizer", "in the optimizer"},
      {"slowed by collectives", "slowdown of kernels by concurrent collectives", ""},
      {"exposed: tensor parallel", "exposed tensor-parallel communication", "tensor-parallel"},
      {"exposed: context parallel", "exposed context-parallel communication", "context-parallel"},
      {"exposed: expert parallel", "exposed expert-parallel communication", "expert-parallel"},
      {"exposed: data parallel", "exposed data-parallel communication", "data-parallel"},
      {"exposed: pipeline parallel", "exposed communication between pipeline stages",
       "between pipeline stages"},
      {"copies to the host", "copies to the host", ""},
      {"pipeline bubble", "the pipeline bubble", ""},
      {"waiting for the host", "waiting for the host", ""},
      {"waiting for slower ranks", "waiting for slower ranks", ""}}}};

struct FigureNames {
  const char* text;
  FigureUnit unit;
};

constexpr EnumArray<StepFigure, FigureNames> kFigureNames{
    {{{"step", FigureUnit::Seconds},
      {"memory at the peak", FigureUnit::Bytes},
      {"tokens/s per GPU", FigureUnit::Number},
      {"TFLOP/s per GPU", FigureUnit::Number},
      {"MFU", FigureUnit::Ratio},
      {"HFU", FigureUnit::Ratio},
      {"tokens/s", FigureUnit::Number},
      {"price of a million tokens", FigureUnit::Dollars}}}};

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace

FigureUnit unit_of(const Figure& figure) {
  return std::visit(Overloaded{[](StepFigure which) { return kFigureNames[which].unit; },
                               [](sim::StepPart) { return FigureUnit::Seconds; },
                               [](MemoryCategory) { return FigureUnit::Bytes; }},
                    figure);
}

std::string key_of(const Figure& figure) {
  return std::visit(
      Overloaded{[](StepFigure which) { return std::string(name_of(which)); },
                 [](sim::StepPart part) { return fmt::format("{}_s", name_of(part)); },
                 [](MemoryCategory category) {
                   return fmt::format("memory_{}_bytes", name_of(category));
                 }},
      figure);
}

const char* part_text(sim::StepPart part) {
  return kPartNames[part].text;
}

const char* part_title(sim::StepPart part) {
  return kPartNames[part].title;
}

const char* part_within(sim::StepPart part) {
  return kPartNames[part].within;
}

std::string memory_text(MemoryCategory category) {
  std::string name = name_of(category);
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string figure_text(const Figure& figure) {
  return std::visit(
      Overloaded{[](StepFigure which) { return std::string(kFigureNames[which].text); },
                 [](sim::StepPart part) { return std::string(part_title(part)); },
                 [](MemoryCategory category) { return "memory: " + memory_text(category); }},
      figure);
}

std::string value_text(const Figure& figure, double value) {
  constexpr int kDigits = 4;
  switch (unit_of(figure)) {
    case FigureUnit::Seconds:
      return format_time(Seconds(value), kDigits);
    case FigureUnit::Bytes:
      return format_bytes(Bytes(value));
    case FigureUnit::Ratio:
      return format_percent(value) + " %";
    case FigureUnit::Number:
      return format_number(value, kDigits);
    case FigureUnit::Dollars:
      return fmt::format("${}", format_number(1e6 * value, kDigits));
  }
  return "";
}

}  // namespace shardwright::planner
