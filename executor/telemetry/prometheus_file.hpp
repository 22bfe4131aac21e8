// A run's figures as a text file for Prometheus' node exporter
// (https://prometheus.io/docs/instrumenting/exposition_formats/). Names have base units and
// suffixes by its conventions (https://prometheus.io/docs/practices/naming/). The node exporter
// refuses time stamps of samples, so that the time of the step is a gauge of its own.
#pragma once

#include <chrono>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace shardwright::executor {

// Writes `metrics.prom` from the last complete line of metrics.jsonl, if there is one, after a rank
// was killed before it could. Throws RuntimeFailure.
void write_prometheus_of_last_line(const std::filesystem::path& metrics);

class PrometheusFile {
 public:
  // The file beside `metrics`. The label "run" of each sample is the name of their folder.
  explicit PrometheusFile(const std::filesystem::path& metrics);

  // Takes the figures of a line of metrics.jsonl (MetricsLog::write), with NaN for null. Writes the
  // file at most once a second. Throws RuntimeFailure.
  void update(const nlohmann::ordered_json& line);
  // Writes the last update unless it is written already.
  void write();

 private:
  std::filesystem::path file_;
  std::string run_, text_;
  std::chrono::steady_clock::time_point last_;
  bool written_ = true;
};

}  // namespace shardwright::executor
