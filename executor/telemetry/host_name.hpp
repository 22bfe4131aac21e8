// The name of this host.
#pragma once

#include <string>

namespace shardwright::executor {

std::string host_name();

}  // namespace shardwright::executor
