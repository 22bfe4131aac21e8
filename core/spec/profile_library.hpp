// The profiles that Shardwright ships, found by name, and users' own, found by path.
//
// Profiles lie in `hardware_profiles/{accelerators,nodes,fabrics,clusters,stacks,runs}/NAME.json`
// of the data directory. An unknown name throws InputError, which suggests the nearest one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/batch_spec.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/run_spec.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright {

// A name without a path is a shipped profile; anything with a '/' or that ends in ".json" is a
// file, a document or a patch on a shipped one (core/spec/spec_document.hpp). The document of a
// cluster may name shipped parts and files beside itself.
ClusterSpec load_cluster(const std::string& name_or_path);
StackSpec load_stack(const std::string& name_or_path);
RunSpec load_run(const std::string& name_or_path);
BatchSpec load_batch(const std::string& name_or_path);
AcceleratorSpec load_accelerator(const std::string& name_or_path);

// Names of the shipped profiles, sorted.
std::vector<std::string> shipped_clusters();
std::vector<std::string> shipped_stacks();
std::vector<std::string> shipped_runs();
std::vector<std::string> shipped_batches();
std::vector<std::string> shipped_accelerators();

// The shipped profiles themselves, by name, read once.
const std::vector<ClusterSpec>& shipped_cluster_specs();
const std::vector<StackSpec>& shipped_stack_specs();

// The shipped accelerator of this name or alias; the name that CUDA gives a device is one.
std::optional<std::string> find_accelerator(const std::string& name);

// The shipped stack whose profile states the member at `pointer` ("/host/launch_s") for the stack
// of this name: the stack itself, or one that its profile is a patch on. A name that is not shipped
// comes back as it is.
std::string stack_that_states(const std::string& name, const std::string& pointer);

}  // namespace shardwright
