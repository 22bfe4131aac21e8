#include "executor/telemetry/prometheus_file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "executor/telemetry/run_files.hpp"

namespace shardwright::executor {

void PrometheusFile::update(const nlohmann::ordered_json& figures) {
  constexpr std::chrono::seconds kBetween{1};
  text_.clear();
  for (const auto& [name, value] : figures.items()) {
    if (!value.is_number() && !value.is_null()) continue;
    text_ += fmt::format("# TYPE shardwright_{0} gauge\nshardwright_{0} {1}\n", name,
                         value.is_null() ? "NaN" : value.dump());
  }
  written_ = false;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < kBetween) return;
  last_ = now;
  write();
}

void PrometheusFile::write() {
  if (written_) return;
  const std::filesystem::path other = file_.string() + ".tmp";
  std::error_code error;
  {
    std::ofstream stream(other);
    stream << text_;
    if (!stream.flush()) fail_to_write(other);
  }
  std::filesystem::rename(other, file_, error);
  if (error) throw RuntimeFailure(file_.string() + ": " + error.message());
  written_ = true;
}

}  // namespace shardwright::executor
