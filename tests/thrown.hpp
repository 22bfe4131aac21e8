// Errors that a test expects.
#pragma once

#include <string>
#include <vector>

#include "core/base/error.hpp"

namespace shardwright {

// Returns the text of the error of this type that `work` throws; "" if it throws none.
template <class Error = InputError, class Work>
std::string thrown_by(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Returns the places of the problems that `work` throws.
template <class Work>
std::vector<std::string> problems_of(const Work& work) {
  std::vector<std::string> places;
  try {
    work();
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) places.push_back(problem.where);
  }
  return places;
}

}  // namespace shardwright
