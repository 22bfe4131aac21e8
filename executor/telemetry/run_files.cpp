#include "executor/telemetry/run_files.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"

namespace shardwright::executor {
namespace {

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream stream(file);
  stream << text << '\n';
  if (!stream.flush()) throw RuntimeFailure(file.string() + " cannot be written");
}

}  // namespace

void write_plan(const std::filesystem::path& folder, const Scenario& scenario) {
  constexpr int kIndent = 2;
  write(folder / "plan.json", to_json(scenario).dump(kIndent));
}

void write_timeline(const std::filesystem::path& folder, std::int64_t step, std::int64_t rank,
                    const Timeline& timeline) {
  write(folder / fmt::format("timeline-{}-{}.json", step, rank), to_json(timeline).dump());
}

}  // namespace shardwright::executor
