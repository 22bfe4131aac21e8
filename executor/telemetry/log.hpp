// The executor's log on standard error.
#pragma once

#include <string>
#include <string_view>

namespace shardwright::executor {

// Without `verbose`, and before the call, the log prints messages as they are and no debug
// messages. With `verbose` it prints them too and begins each line with time (UTC), level and
// `origin`, for instance "rank 3 on node7".
void start_log(bool verbose, const std::string& origin);

// Lines that cannot be written are dropped.
void log_debug(std::string_view message);
void log_info(std::string_view message);
void log_warning(std::string_view message);
void log_error(std::string_view message);

}  // namespace shardwright::executor
