// Output to standard output and to files, which are complete or absent, never partial.
#pragma once

#include <functional>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace shardwright::cli {

// The reader of standard output has closed it (a pipe into `head`), so nobody reads a message.
class OutputClosed : public std::runtime_error {
 public:
  OutputClosed() : std::runtime_error("standard output was closed by its reader") {}
};

// Writes the whole text to standard output. Throws OutputClosed, or RuntimeFailure if it cannot be
// written (a full disk).
void write_stdout(std::string_view text);

// Throws InputError if the file exists and `overwrite` is false, or its folder does not exist.
// Called before the work, so that hours of search do not end in a refusal. "-" always passes.
void check_destination(const std::string& option, const std::string& file, bool overwrite);

// An option that names an output file, and the file: "-" is standard output, empty is none.
struct Destination {
  std::string option;
  std::string file;
};

// Checks all files that a command writes. Also throws InputError if two of them are the same.
void check_destinations(const std::vector<Destination>& destinations, bool overwrite);

// True if one of them is standard output, to which nothing else may be written then.
bool take_stdout(const std::vector<Destination>& destinations);

// Writes to a temporary file in the same folder and renames it, so that no reader sees a partial
// file. "-" is standard output; a file that is not regular (a pipe, /dev/null) is written directly.
// Throws RuntimeFailure if the file cannot be written, or was created since check_destination.
void write_file(const std::string& file_or_dash, std::string_view text, bool overwrite);

// Writes text that `write` produces piece by piece, because it may be too large for memory.
void write_file(const std::string& file_or_dash, const std::function<void(std::ostream&)>& write,
                bool overwrite);

// Returns the document as indented text that ends with a line feed. Doubles round-trip. Throws
// RuntimeFailure with the place of a number that is not finite, which is a defect of the result.
std::string json_text(const nlohmann::ordered_json& document);

// A number of such a document; null unless it is finite.
nlohmann::ordered_json finite_or_null(double value);

}  // namespace shardwright::cli
