// A run's figures as a text file for Prometheus' node exporter
// (https://prometheus.io/docs/instrumenting/exposition_formats/).
#pragma once

#include <chrono>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace shardwright::executor {

class PrometheusFile {
 public:
  explicit PrometheusFile(std::filesystem::path file) : file_(std::move(file)) {}

  // Sets a gauge "shardwright_NAME" for each number of the object, and NaN for null. Writes the
  // file at most once a second. Throws RuntimeFailure.
  void update(const nlohmann::ordered_json& figures);
  // Writes the last update unless it is written already: to another file, which it then renames.
  void write();

 private:
  std::filesystem::path file_;
  std::string text_;
  std::chrono::steady_clock::time_point last_;
  bool written_ = true;
};

}  // namespace shardwright::executor
