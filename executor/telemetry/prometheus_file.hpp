// A run's figures as a text file that Prometheus' node exporter collects
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

  // A gauge "shardwright_NAME" for each number of the object, NaN where it is null (JSON has no
  // word for that number); written at most once a second. Throws RuntimeFailure.
  void update(const nlohmann::ordered_json& figures);
  // What the last update said, unless it is written already: under another name, then renamed.
  void write();

 private:
  std::filesystem::path file_;
  std::string text_;
  std::chrono::steady_clock::time_point last_;
  bool written_ = true;
};

}  // namespace shardwright::executor
