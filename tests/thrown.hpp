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

// Returns the problems that `work` throws.
template <class Work>
std::vector<Problem> problems_thrown_by(const Work& work) {
  try {
    work();
  } catch (const InputError& error) {
    return error.problems();
  }
  return {};
}

// Returns the places of the problems that `work` throws.
template <class Work>
std::vector<std::string> problems_of(const Work& work) {
  std::vector<std::string> places;
  for (const Problem& problem : problems_thrown_by(work)) places.push_back(problem.where);
  return places;
}

}  // namespace shardwright
