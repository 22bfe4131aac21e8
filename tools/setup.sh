# Set-up that ./shardwright and ./run-tests share: Debian packages, configuring, building.
# Sourced by bash under `set -euo pipefail`, with `root` set to the source tree. Everything that it says
# goes to stderr and everything that it writes lies below build/.
# shellcheck shell=bash

# The compiler cache of a checkout lives and dies with it.
export CCACHE_DIR="${CCACHE_DIR:-$root/build/ccache}"

# Tools that are interrupted end with codes of their own; bash alone would take those for failures.
trap 'exit 130' INT
trap 'exit 143' TERM

say() { printf 'shardwright: %s\n' "$*" >&2; }

die() {
  say "$@"
  exit 1
}

# Names the packages of the groups given.
packages_of() {
  local group line
  while read -r group line; do
    [[ " $* " == *" $group "* ]] && tr ' ' '\n' <<<"$line"
  done <"$root/tools/debian_packages.txt"
  return 0
}

# Names those of the packages given that are not installed.
missing_packages() {
  local installed package
  installed=" $(dpkg-query -W -f '${db:Status-Status}:${Package} ' "$@" 2>/dev/null || true)"
  for package in "$@"; do
    [[ "$installed" == *" installed:$package "* ]] || printf '%s\n' "$package"
  done
}

# apt_get ARGUMENT…: without questions, as root or through sudo; its output goes to the log.
apt_get() {
  local as_root=()
  if ((EUID != 0)); then
    as_root=(sudo)
    [[ -t 0 ]] || as_root+=(-n)
  fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=600 \
    "$@" >>"$root/build/install.log" 2>&1 </dev/null
}

# require_packages yes|no GROUP…: installs what is missing, or names it and exits with 1.
require_packages() {
  local may_install=$1 wanted missing
  shift
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system: taking the tools and libraries as they are"
    return
  fi
  mapfile -t wanted < <(packages_of "$@")
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  ((${#missing[@]})) || return 0

  local command="apt-get install --no-install-recommends ${missing[*]}"
  if [[ $may_install == no ]]; then
    die "missing Debian packages: ${missing[*]}"$'\n'"install them with: $command"
  fi
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    die "missing Debian packages: ${missing[*]}"$'\n'"neither root nor sudo; as root, run: $command"
  fi
  say "installing Debian packages: ${missing[*]}"
  mkdir -p "$root/build"
  : >"$root/build/install.log"
  # Package lists that are absent or too old make the first attempt fail.
  apt_get install --no-install-recommends "${missing[@]}" && return
  say "refreshing the package lists"
  apt_get update || true
  if ! apt_get install --no-install-recommends "${missing[@]}"; then
    tail -n 15 "$root/build/install.log" >&2
    die "the packages could not be installed; try: $command"
  fi
}

# Makes the calls that share one build folder take turns; the lock ends with `unlock_build` or with the
# process and its children, so that a killed call's compilers are waited for.
lock_build() {
  mkdir -p "$root/build"
  exec {build_lock}>"$root/build/$1.lock"
  flock --nonblock "$build_lock" && return
  say "waiting for another build of $1"
  flock "$build_lock"
}

unlock_build() { exec {build_lock}>&-; }

# Copies ninja's output to the log and tells how far it is, once that it takes more than two seconds.
show_progress() {
  local preset=$1 line said=2 terminal=no
  [[ -t 2 ]] && terminal=yes
  while IFS= read -r line; do
    printf '%s\n' "$line"
    if ((SECONDS - started < said)) || [[ ! $line =~ ^\[([1-9][0-9]*/[0-9]+)\] ]]; then continue; fi
    if [[ $terminal == yes ]]; then
      printf '\rshardwright: building %s [%s] \033[K' "$preset" "${BASH_REMATCH[1]}" >&2
    else
      say "building $preset [${BASH_REMATCH[1]}]"
      said=$((SECONDS - started + 30))
    fi
  done
  if [[ $terminal == yes ]]; then printf '\r\033[K' >&2; fi
}

# Prints what went wrong in a build log: from the first failed step on.
show_failure() {
  if grep -q '^FAILED: ' "$1"; then
    sed -n '/^FAILED: /,$p' "$1" | head -n 60 >&2
  else
    tail -n 40 "$1" >&2
  fi
}

# configure PRESET: a no-op where ninja can look after the configuration by itself.
configure() {
  local preset=$1 build=$root/build/$1
  [[ -f $build/build.ninja && $(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$build/CMakeCache.txt") == "$root" ]] && return
  mkdir -p "$build"
  # A tree that was moved, or whose first attempt broke off, starts afresh.
  (cd "$root" && cmake --fresh --preset "$preset") >"$build/configure.log" 2>&1 </dev/null && return
  cat "$build/configure.log" >&2
  die "configuring the $preset build failed"
}

# build PRESET [TARGET…]: quiet unless it fails or takes long.
build() {
  local preset=$1 target targets=() started=$SECONDS
  shift
  configure "$preset"
  for target in "$@"; do targets+=(--target "$target"); done
  local log=$root/build/$preset/build.log
  if ! (cd "$root" && cmake --build --preset "$preset" "${targets[@]}") 2>&1 </dev/null |
    show_progress "$preset" >"$log"; then
    show_failure "$log"
    die "building $preset failed; the whole log is in $log"
  fi
}
