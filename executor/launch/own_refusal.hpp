// A rank that is refused by itself, before the ranks meet: a file that its host lacks, an option of
// its own. The others would wait for it, so they are told.
#pragma once

#include <chrono>
#include <string>

#include "core/base/error.hpp"
#include "executor/launch/launch_place.hpp"

namespace shardwright::executor {

// Joins the others, or serves them, to tell them the error as agreement.hpp does; gives up after
// `timeout`, and after half a minute in any case: launchers end the others when this rank ends.
// Nothing where there are no others that could be reached: under our own launcher, which ends them,
// in a world of one, and without the run's secret, `token`.
void tell_other_ranks(const LaunchPlace& place, const std::string& token, const InputError& error,
                      std::chrono::milliseconds timeout);

}  // namespace shardwright::executor
