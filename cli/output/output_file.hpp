// Where results go: standard output and files that are whole or not there at all.
#pragma once

#include <functional>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace shardwright::cli {

// The reader of standard output went away (a pipe into `head`): there is nobody to tell.
class OutputClosed : public std::runtime_error {
 public:
  OutputClosed() : std::runtime_error("standard output was closed by its reader") {}
};

// Writes the whole text to standard output. Throws OutputClosed, or RuntimeFailure if it cannot be
// written (a full disk).
void write_stdout(std::string_view text);

// Throws InputError if the file exists and `overwrite` is false, or its folder does not exist.
// Asked before the work, so that hours of search do not end in a refusal. "-" always passes.
void check_destination(const std::string& option, const std::string& file, bool overwrite);

// An option that names a file to write, and the file; "-" is standard output, empty is none.
struct Destination {
  std::string option;
  std::string file;
};

// The same for all files that a command writes. Throws InputError too if two of them are one.
void check_destinations(const std::vector<Destination>& destinations, bool overwrite);

// True if one of them is standard output, which then takes nothing else.
bool take_stdout(const std::vector<Destination>& destinations);

// Writes to a temporary file in the same folder and renames it, so that no reader ever meets half a
// file; "-" is standard output, and what is no regular file (a pipe, /dev/null) is written to as it
// is. Throws RuntimeFailure if it cannot be written, or has come into being since
// check_destination.
void write_file(const std::string& file_or_dash, std::string_view text, bool overwrite);

// The same for text that `write` makes piece by piece, and which may be too large to hold.
void write_file(const std::string& file_or_dash, const std::function<void(std::ostream&)>& write,
                bool overwrite);

// Indented text that ends with a line feed. Doubles round-trip. A number that is not finite is a
// defect of the result; throws RuntimeFailure with its place.
std::string json_text(const nlohmann::ordered_json& document);

}  // namespace shardwright::cli
