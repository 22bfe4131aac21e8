#include "executor/telemetry/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <memory>

namespace shardwright::executor {
namespace {

spdlog::logger& logger() {
  static spdlog::logger log = [] {
    spdlog::logger made("executor", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made.set_pattern("%v");
    return made;
  }();
  return log;
}

}  // namespace

void start_log(bool verbose, const std::string& origin) {
  logger().set_level(verbose ? spdlog::level::debug : spdlog::level::info);
  logger().set_pattern(verbose ? "%Y-%m-%dT%H:%M:%S.%eZ %l [" + origin + "] %v" : "%v",
                       spdlog::pattern_time_type::utc);
}

void log_debug(std::string_view message) {
  logger().debug("{}", message);
}

void log_info(std::string_view message) {
  logger().info("{}", message);
}

void log_warning(std::string_view message) {
  logger().warn("{}", message);
}

void log_error(std::string_view message) {
  logger().error("{}", message);
}

}  // namespace shardwright::executor
