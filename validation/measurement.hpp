// A published measurement of a training step: a scenario, what was measured, and how the figures
// are to be read.
//
// Everything that decides a prediction, or how it is held against the measurement, is a typed
// field. Notes are for people; no program reads them. docs/formats/measurements.md describes the
// files.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/units.hpp"
#include "core/spec/scenario.hpp"
#include "validation/flops_convention.hpp"

namespace shardwright {
class FieldVisitor;
class ObjectReader;
}  // namespace shardwright

namespace shardwright::validation {

// The source of a measurement.
struct PublishedSource {
  std::string title;
  // An address, with the table or the section.
  std::string where;

  bool operator==(const PublishedSource&) const = default;
};

PublishedSource read_published_source(ObjectReader object);

// The counter of memory that a source reads.
enum class MemoryCounter : std::uint8_t {
  // Tensors: torch.cuda.max_memory_allocated.
  Allocated,
  // The allocator's share of the device: torch.cuda.max_memory_reserved.
  Reserved,
  // Everything on the device, as nvidia-smi shows it.
  Device,
};
constexpr auto enum_names(MemoryCounter) {
  return std::array{"allocated", "reserved", "device"};
}

// The rank whose peak a figure is: the fullest one, or the one that writes the log.
enum class MemoryRank : std::uint8_t { Fullest, LastStage };
constexpr auto enum_names(MemoryRank) {
  return std::array{"fullest", "last_stage"};
}

struct MemoryReading {
  MemoryCounter counter = MemoryCounter::Device;
  MemoryRank rank = MemoryRank::Fullest;

  bool operator==(const MemoryReading&) const = default;
};

enum class StepMetric : std::uint8_t { StepTime, TokenRate, FlopRate, Mfu };
constexpr auto enum_names(StepMetric) {
  return std::array{"step_s", "tokens_per_s_per_gpu", "tflops_per_gpu", "mfu"};
}

// True for the metrics that count FLOP.
bool counts_flop(StepMetric metric);

// The figures that the source prints; 0 where it has none.
struct MeasuredFigures {
  double step_s = 0.0, tokens_per_s_per_gpu = 0.0, tflops_per_gpu = 0.0, mfu = 0.0;
  Bytes peak_memory;

  bool operator==(const MeasuredFigures&) const = default;
};

// The figure that a prediction is held against.
struct ComparedFigure {
  StepMetric metric = StepMetric::StepTime;
  double value = 0.0;
  // The value follows from other figures of the source.
  bool derived = false;
  // The source's convention for the FLOP of rates and MFU.
  FlopsConvention flops;

  bool operator==(const ComparedFigure&) const = default;
};

enum class Outcome : std::uint8_t { Ran, OutOfMemory };
constexpr auto enum_names(Outcome) {
  return std::array{"ran", "out_of_memory"};
}

struct Measurement {
  std::string id;
  // The file that it was read from.
  std::string file;
  PublishedSource source;
  // "A": plan and figure are known; "B": something is inferred; "C": incomplete; or empty.
  std::string grade;
  // Measurements of one group can be ranked against each other.
  std::string group;
  // Accelerator and software as the source names them.
  std::string stated_accelerator, stated_stack;
  // The software has no profile of its own; the scenario's stack stands in for it.
  bool stack_stands_in = false;
  // Its plan has default values in the open fields; resolved_scenario() chooses them.
  std::optional<Scenario> scenario;
  // Fields of the plan that the source leaves open.
  std::vector<std::string> open;
  // The GPUs of the run if a degree of its plan is open, else 0.
  std::int64_t gpus = 0;
  Outcome outcome = Outcome::Ran;
  MeasuredFigures measured;
  std::optional<ComparedFigure> figure;
  MemoryReading memory;
  // Statements of the scenario that the source does not make, in words.
  std::vector<std::string> assumed;
  std::string notes;
  // The reason why there is no scenario; empty if there is one.
  std::string unsupported;

  bool operator==(const Measurement&) const = default;
};

// The JSON Schema of a line.
nlohmann::ordered_json measurement_schema();

// The fields that published steps and published runs have in common: their source, and what ran.
void describe_setup(Measurement& row, FieldVisitor& fields);

// Checks the described fields of a row, and reads its scenario.
void read_setup(ObjectReader& object, Measurement& row);

// Reads all measurements of a file of JSON lines; empty lines are skipped. Throws InputError with
// all problems of the file, each with its line and JSON pointer: "line 3/scenario/plan/tp".
std::vector<Measurement> read_measurements(const std::string& file);

// Reads the lines of a stream; `source` names it in errors and in the measurements.
std::vector<Measurement> read_measurements(std::istream& stream, const std::string& source);

// Reads several files, one after the other and each file once. Throws InputError with the problems
// of all of them.
std::vector<Measurement> read_measurements(const std::vector<std::string>& files);

// The files of measured steps that travel with the project. Runs out of memory are among them.
std::vector<std::string> shipped_measurements();

// The measurement of this id. Throws InputError, with the nearest id, if there is none.
Measurement find_measurement(const std::string& file, const std::string& id);

[[noreturn]] void throw_unknown_row(const std::string& file, const char* what,
                                    const std::string& id, const std::vector<std::string>& ids);

// Returns the row of a file that has this id. Throws InputError without one.
template <typename Row, typename IdOf>
Row find_row(std::vector<Row> rows, const std::string& file, const std::string& id,
             const char* what, IdOf id_of) {
  std::vector<std::string> ids;
  for (Row& row : rows) {
    ids.push_back(std::invoke(id_of, row));
    if (ids.back() == id) return std::move(row);
  }
  throw_unknown_row(file, what, id, ids);
}

// Returns the scenario of a measurement that has one, with the open fields of its plan as
// planner::choose_open_fields() chooses them. Throws InputError if no plan answers the rest.
Scenario resolved_scenario(const Measurement& measurement);

// The plan's values of the measurement's open fields, by name.
nlohmann::ordered_json open_values(const Measurement& measurement, const Plan& plan);

// The same in words, for people: "chosen by search: micro_batch 2, recompute full".
std::string choice_text(const Measurement& measurement, const Plan& plan);

// True if the source leaves open a part of the plan that sets the time of its step: micro-batch,
// virtual stages, recomputation, or how the model is cut.
bool leaves_plan_open(const Measurement& measurement);

}  // namespace shardwright::validation
