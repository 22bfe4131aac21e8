#include "executor/telemetry/prometheus_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/printable_text.hpp"
#include "core/base/untrusted_file.hpp"
#include "executor/telemetry/run_files.hpp"

namespace shardwright::executor {
namespace {

// A figure of a line, and its gauge behind "shardwright_".
struct Gauge {
  const char *key, *name, *help;
};

constexpr std::array kGauges = {
    Gauge{"step", "step", "Last completed step, counted from 0."},
    Gauge{"unix_time_s", "step_timestamp_seconds", "Unix time at which the step ended."},
    Gauge{"loss", "loss", "Loss of the step in nats per token, over the global batch."},
    Gauge{"gradient_norm", "gradient_norm", "Norm of all gradients before clipping."},
    Gauge{"learning_rate", "learning_rate", "Learning rate of the step."},
    Gauge{"step_s", "step_seconds", "Time of the step."},
    Gauge{"tokens_per_s", "tokens_per_second", "Tokens of all ranks per second of the step."},
    Gauge{"validation_loss", "validation_loss", "Mean loss of the held-out batches."},
    Gauge{"staleness_updates", "staleness_updates", "Updates of others since the last pull."},
    Gauge{"steps_ahead", "steps_ahead", "Steps ahead of the slowest replica."},
    Gauge{"mfu", "mfu_ratio", "FLOP of the model per second over the peak of all devices."},
    Gauge{"forward_s", "forward_seconds", "Kernels of rank 0 in the forward pass."},
    Gauge{"backward_s", "backward_seconds", "Kernels of rank 0 in the backward pass."},
    Gauge{"optimizer_s", "optimizer_seconds", "Kernels of rank 0 in the optimizer."},
    Gauge{"communication_s", "communication_seconds",
          "Collectives and transfers of rank 0, with the wait for other ranks."},
    Gauge{"tensor_peak_bytes", "tensor_peak_bytes", "Peak of the tensors of rank 0."},
    Gauge{"process_peak_bytes", "process_peak_bytes", "Peak memory of the process of rank 0."},
    Gauge{"checkpoint_stall_s", "checkpoint_stall_seconds",
          "Time that training waited for checkpoints since the step before."},
    Gauge{"slowest_rank", "slowest_rank", "Slowest rank of the last ten steps."},
    Gauge{"slowest_rank_slowdown", "slowest_rank_slowdown_ratio",
          "Time of that rank for the same work over that of its peers."},
    Gauge{"gradient_noise_scale_tokens", "gradient_noise_scale_tokens",
          "Gradient noise scale in tokens."},
    Gauge{"rank_compute_s", "rank_compute_seconds",
          "Kernels of each rank in the forward and the backward pass."},
};

// A label's value in quotes.
std::string label_text(std::string_view value) {
  std::string text = "\"";
  for (const char c : printable(std::string(value))) {
    if (c == '\\' || c == '"') text += '\\';
    text += c;
  }
  return text + '"';
}

std::string value_of(const nlohmann::ordered_json& number) {
  return number.is_number() ? number.dump() : "NaN";
}

std::string header_of(const Gauge& gauge) {
  return fmt::format("# HELP shardwright_{0} {1}\n# TYPE shardwright_{0} gauge\n", gauge.name,
                     gauge.help);
}

std::string samples_of(const Gauge& gauge, const nlohmann::ordered_json& figure,
                       const std::string& labels) {
  std::string text = header_of(gauge);
  if (!figure.is_array())
    return text + fmt::format("shardwright_{}{{{}}} {}\n", gauge.name, labels, value_of(figure));
  for (std::size_t rank = 0; rank < figure.size(); ++rank)
    text += fmt::format("shardwright_{}{{{},rank=\"{}\"}} {}\n", gauge.name, labels, rank,
                        value_of(figure[rank]));
  return text;
}

// Returns the last complete line, or null. Text after the last line feed is a truncated line.
nlohmann::ordered_json last_line(const std::filesystem::path& file) {
  if (!kind_unless_regular(file).empty()) return {};
  // The bytes that are read, far more than a line has, with the times of some ten thousand ranks.
  constexpr std::streamoff kLongest = 1 << 20;
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  const std::streamoff size = stream ? std::streamoff(stream.tellg()) : 0;
  stream.seekg(std::max<std::streamoff>(0, size - kLongest));
  std::string text(std::istreambuf_iterator<char>(stream), {});
  text.resize(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n'));
  // Without a previous line feed this is npos + 1, which is 0.
  auto line = nlohmann::ordered_json::parse(text.substr(text.rfind('\n') + 1), nullptr, false);
  return line.is_object() ? line : nlohmann::ordered_json();
}

}  // namespace

PrometheusFile::PrometheusFile(const std::filesystem::path& metrics)
    : file_(std::filesystem::path(metrics).replace_extension(".prom")),
      run_("run=" + label_text(std::filesystem::absolute(metrics)
                                   .lexically_normal()
                                   .parent_path()
                                   .filename()
                                   .string())) {}

void PrometheusFile::update(const nlohmann::ordered_json& line) {
  constexpr std::chrono::seconds kBetween{1};
  constexpr Gauge kInfo{nullptr, "run_info", "What the run trains on and under which plan."};
  text_ = header_of(kInfo) + "shardwright_run_info{" + run_;
  for (const char* key : {"device", "program"}) {
    const auto found = line.find(key);
    if (found != line.end() && found->is_string())
      text_ += fmt::format(",{}={}", key, label_text(found->get<std::string>()));
  }
  text_ += "} 1\n";
  for (const Gauge& gauge : kGauges) {
    const auto found = line.find(gauge.key);
    if (found != line.end()) text_ += samples_of(gauge, *found, run_);
  }
  written_ = false;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < kBetween) return;
  last_ = now;
  write();
}

void PrometheusFile::write() {
  if (written_) return;
  replace_file(file_, text_);
  written_ = true;
}

void write_prometheus_of_last_line(const std::filesystem::path& metrics) {
  const nlohmann::ordered_json line = last_line(metrics);
  if (line.is_null()) return;
  PrometheusFile prometheus(metrics);
  prometheus.update(line);
  prometheus.write();
}

}  // namespace shardwright::executor
