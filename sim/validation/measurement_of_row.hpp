// Typed measurements from rows that tell a part of their configuration in words.
#pragma once

#include <string>
#include <vector>

#include "sim/validation/measurement.hpp"
#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// Everything that the row's words decide, decided.
Measurement measurement_of(const TrainingRow& row);

// Those of files of typed measurements, or of files of rows.
std::vector<Measurement> measurements_of(const std::vector<std::string>& files);

// What became of the rows of a file.
struct Conversion {
  std::string lines;  // of the typed file
  std::size_t rows = 0;
  std::size_t unsupported = 0;        // of these, rows without a scenario, cluster or kernels
  std::vector<std::string> problems;  // rows that do not read back equal, and ids that were changed
};

// Converts training rows, timings of collectives or timings of kernels. Throws InputError if no row
// of the file can be read.
Conversion convert_rows(const std::string& file);

}  // namespace shardwright::sim
