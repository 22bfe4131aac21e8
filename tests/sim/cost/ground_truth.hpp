// Rows of tests/ground_truth and the statistics of their residuals.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

namespace shardwright::sim::testing {

inline std::vector<nlohmann::json> read_rows(const std::string& file) {
  std::vector<nlohmann::json> rows;
  std::ifstream in(std::string(SHARDWRIGHT_SOURCE_DIR) + "/tests/ground_truth/" + file);
  for (std::string line; std::getline(in, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

// Relative errors (predicted / measured - 1) by class of rows.
class Residuals {
 public:
  void add(const std::string& name, double predicted, double measured) {
    const double error = std::abs(predicted / measured - 1.0);
    errors_[name].push_back(error);
    all_.push_back(error);
  }

  // The given quantile of the absolute errors of all rows.
  double quantile(double share) const { return quantile_of(all_, share); }
  std::size_t count() const { return all_.size(); }
  double quantile(const std::string& name, double share) const {
    return quantile_of(errors_.at(name), share);
  }

  void print(std::ostream& out) const {
    for (const auto& [name, errors] : errors_)
      out << name << ": " << errors.size() << " rows, median " << 100 * quantile_of(errors, 0.5)
          << " %, p90 " << 100 * quantile_of(errors, 0.9) << " %\n";
    out << "all: " << all_.size() << " rows, median " << 100 * quantile(0.5) << " %, p90 "
        << 100 * quantile(0.9) << " %\n";
  }

 private:
  static double quantile_of(std::vector<double> errors, double share) {
    std::sort(errors.begin(), errors.end());
    return errors[static_cast<std::size_t>(share * static_cast<double>(errors.size() - 1))];
  }

  std::map<std::string, std::vector<double>> errors_;
  std::vector<double> all_;
};

}  // namespace shardwright::sim::testing
