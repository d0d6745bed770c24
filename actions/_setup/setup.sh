#!/usr/bin/env bash
# Sets sealpipe up for the steps of a job, from the action's own checkout: docs/reference/ci-setup.md. For bash 3.2, as macOS has.
#   SEALPIPE_SETUP_EXTRAS      extras, comma-separated; may be empty
#   SEALPIPE_SETUP_INSTALLER   auto, uv or pip
#   SEALPIPE_SETUP_EXECUTABLE  a sealpipe that is there already: nothing is installed
#   SEALPIPE_SETUP_KEEP        names of more variables that the installer is given
# Appends `executable=PATH` to GITHUB_OUTPUT. Exit code 2 where it cannot be set up, and `error-code=2`; nothing was sent
# then.
set +x -euo pipefail
umask 077

here=$(unset CDPATH && cd -P -- "${BASH_SOURCE[0]%/*}" && pwd)
# shellcheck source=/dev/null
. "$here/secrets.sh"

# To unset the step's secrets is not enough: a name that bash does not know (my-token) would go on to whatever is started,
# and that could read what this process was started with. So it starts anew, with nothing; the variables come by a pipe.
if [[ ${1:-} != anew ]]; then
  own=SEALPIPE_SETUP_EXTRAS,SEALPIPE_SETUP_INSTALLER,SEALPIPE_SETUP_EXECUTABLE,SEALPIPE_SETUP_KEEP
  keep_only_what_installers_need "${SEALPIPE_SETUP_KEEP:-},$own,RUNNER_TEMP,RUNNER_DEBUG,GITHUB_OUTPUT"
  exec -c "$BASH" --noprofile --norc "${BASH_SOURCE[0]}" anew 3< <(export -p)
fi
IFS= read -r -d '' variables <&3 || true
exec 3<&-
eval "$variables"
unset variables

extras=${SEALPIPE_SETUP_EXTRAS:-}
installer=${SEALPIPE_SETUP_INSTALLER:-auto}
executable=${SEALPIPE_SETUP_EXECUTABLE:-}
keep=${SEALPIPE_SETUP_KEEP:-}
temp=${RUNNER_TEMP:-}
output=${GITHUB_OUTPUT:-}
debug=${RUNNER_DEBUG:-}
checkout=${here%/*/*}
keep_only_what_installers_need "$keep"

refuse() {
  printf '::error title=sealpipe set-up::%s\n' "$(escaped "$1")"
  printf 'error-code=2\n' >> "${output:-/dev/null}"
  exit 2
}
tell_debug() { if [[ -n $debug ]]; then printf '::debug::%s\n' "$(escaped "$1")"; fi; }

hand_on() {
  case $1 in *$'\n'* | *$'\r'*) refuse "the path of sealpipe has a line break in it" ;; esac
  printf 'executable=%s\n' "$1" >> "${output:-/dev/stdout}"
}

version_of() {
  local line
  line=$("$1" --version 2>/dev/null) || return 1
  [[ $line =~ ^sealpipe\ [0-9][0-9A-Za-z.+]*$ ]] && printf '%s' "${line#sealpipe }"
}

# --- a sealpipe that is there already ---------------------------------------------------------------------------------
use_what_is_there() {
  local found version expected
  found=$(type -P -- "$executable") || refuse "executable: there is no program $executable"
  [[ $found == /* ]] || found=$PWD/$found
  version=$(version_of "$found") || refuse "executable: $executable is no sealpipe: --version does not print its version"
  expected=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$checkout/pyproject.toml")
  if [[ $version != "$expected" ]]; then
    printf '::warning title=sealpipe set-up::%s\n' \
      "$(escaped "executable is sealpipe $version, and this action is made for $expected")"
  fi
  hand_on "$found"
  printf 'sealpipe %s is there already\n' "$version"
}

# --- which Python, and who installs -----------------------------------------------------------------------------------
python='' python_version='' python_pip=''
probe='import sys
from importlib.util import find_spec
assert (3, 11) <= sys.version_info
there = [name for name in ("pip", "ensurepip") if find_spec(name) and find_spec("venv")]
pip = there[0] if there else "none"
print(sys.executable, ".".join(map(str, sys.version_info[:3])), pip, sep="\n")'

# The first that is new enough, and can install where it has to ($1 is `pip`); before others those for which every extra
# has wheels.
find_python() {
  local candidate answer
  for candidate in python3.13 python3.12 python3.11 python3.14 python3.15 python3 python; do
    answer=$("$candidate" -I -c "$probe" 2>/dev/null) || continue
    { read -r python && read -r python_version && read -r python_pip; } <<< "$answer"
    if [[ $1 != pip || $python_pip != none ]]; then return 0; fi
  done
  python='' python_version=''
  return 1
}

# Whether a file of that installer's configuration has a line with one of these names ($1: an expression).
says() { grep -Eqs "^[[:space:]]*($1)" "${@:2}"; }
pip_says() {
  [[ ${PIP_CONFIG_FILE:-} != /dev/null ]] &&
    says "($1)[[:space:]]*[=:]" "${PIP_CONFIG_FILE:-/dev/null}" /etc/pip.conf /etc/xdg/pip/pip.conf \
      "${HOME:-}/.pip/pip.conf" "${XDG_CONFIG_HOME:-${HOME:-}/.config}/pip/pip.conf" \
      "/Library/Application Support/pip/pip.conf" "${HOME:-}/Library/Application Support/pip/pip.conf"
}
uv_says() {
  says "$1" "${UV_CONFIG_FILE:-/dev/null}" /etc/uv/uv.toml "${XDG_CONFIG_HOME:-${HOME:-}/.config}/uv/uv.toml"
}

pip_has_index() {
  [[ -n ${PIP_INDEX_URL:-}${PIP_EXTRA_INDEX_URL:-}${PIP_FIND_LINKS:-}${PIP_NO_INDEX:-} ]] ||
    pip_says '(extra[-_])?index[-_]url|find[-_]links|no[-_]index'
}
uv_has_index() {
  [[ -n $(compgen -e UV_INDEX)${UV_DEFAULT_INDEX:-}${UV_EXTRA_INDEX_URL:-}${UV_FIND_LINKS:-} ]] ||
    uv_says '\[\[index\]\]|(extra-)?index-url|find-links|no-index'
}
pip_has_ca() { [[ -n ${PIP_CERT:-} ]] || pip_says cert; }
uv_has_ca() {
  [[ -n ${SSL_CERT_FILE:-}${SSL_CERT_DIR:-}${UV_SYSTEM_CERTS:-}${UV_NATIVE_TLS:-} ]] || uv_says 'system-certs|native-tls'
}
only_pip_is_told() { { pip_has_index && ! uv_has_index; } || { pip_has_ca && ! uv_has_ca; }; }

choose() {
  local have_uv=''
  if type -P uv > /dev/null; then have_uv=yes; fi
  case $installer in
    uv) [[ $have_uv ]] || refuse "installer: uv is not installed. Install it first, or use installer: auto" ;;
    pip) ;;
    auto)
      installer=pip
      if [[ $have_uv ]] && ! { only_pip_is_told && find_python pip; }; then installer=uv; fi
      ;;
    *) refuse "installer is auto, uv or pip, and not $installer" ;;
  esac
  [[ $python ]] || find_python "$installer" || [[ $installer == uv ]] ||
    refuse "there is no Python 3.11 or newer with pip here$([[ $have_uv ]] || printf ', and no uv'). Before this step, \
use actions/setup-python with python-version: '3.13', or install uv; or give executable the path of a sealpipe"
}

# --- the lock, and the place that goes with it ------------------------------------------------------------------------
locks=()
choose_locks() {
  local name
  locks=("$here/locks/base.txt")
  for name in ${extras//,/ }; do
    case $name in *[!a-z0-9-]* | base | build) name=/ ;; esac
    [[ -f $here/locks/$name.txt ]] || refuse "extras: there is no extra of that name in: $extras"
    locks+=("$here/locks/$name.txt")
  done
}

sha256=(sha256sum)
type -P sha256sum > /dev/null || sha256=(shasum -a 256)

# Another checkout, lock, Python or set of extras has another place. $1...: what else it stands for.
digest() {
  {
    printf '%s\n' "$@" "${locks[@]#"$here/"}"
    cd -- "$checkout"
    find pyproject.toml LICENSE core plugins actions/_setup -type f ! -name '*.pyc' -print | LC_ALL=C sort |
      tr '\n' '\0' | xargs -0 "${sha256[@]}"
  } | "${sha256[@]}" | cut -c 1-16
}

# --- the installation -------------------------------------------------------------------------------------------------
work='' child=''
cleared() {
  if [[ $child ]] && kill -- "-$child" 2>/dev/null; then wait "$child" 2>/dev/null || true; fi
  if [[ $work ]]; then rm -rf -- "$work"; fi
}

# In the background and a group of its own, so that a job that is cancelled ends it, and what it has started, at once.
# Its output is shown only if it fails.
run() {
  local code=0
  set -m
  "$@" > "$work/log" 2>&1 < /dev/null &
  child=$!
  set +m
  wait "$child" || code=$?
  child=''
  if ((code)); then
    harmless "${1##*/}" < "$work/log"
    refuse "sealpipe could not be installed: $installer ended with exit code $code, what it said is in the log. Is \
there a package index for it (PIP_INDEX_URL, UV_DEFAULT_INDEX), a proxy, a CA?"
  fi
}

make_venv() {
  if [[ $installer == uv ]]; then
    # uv cannot do without a cache.
    if [[ -z ${UV_CACHE_DIR:-} ]] && ! writable "${XDG_CACHE_HOME:-${HOME:-/dev/null}/.cache}/uv"; then
      export UV_CACHE_DIR=$work/cache
    fi
    run uv venv --quiet --no-project --python "${python:->=3.11,<3.14}" venv
  elif [[ $python_pip == pip ]]; then
    run "$python" -I -m venv --without-pip venv
  else
    run "$python" -I -m venv venv
  fi
}

writable() { mkdir -p -- "$1" 2>/dev/null && [[ -w $1 ]]; }

# $@: more words. Wheels only, each with its hash in the file; a dependency that the lock does not name is not installed.
install() {
  local words=(--quiet --require-hashes --only-binary :all: --no-deps)
  if [[ $installer == uv ]]; then
    # Copied: a step that changes its own copy leaves the cache as it is.
    run uv pip install "${words[@]}" --python "$work/venv/bin/python" --link-mode copy "$@"
  else
    local pip=("$work/venv/bin/python" -I -m pip)
    if [[ $python_pip == pip ]]; then pip=("$python" -I -m pip --python "$work/venv/bin/python"); fi
    run "${pip[@]}" install "${words[@]}" --no-user --no-input --disable-pip-version-check "$@"
  fi
}

build='import os, sys
sys.path.insert(0, sys.argv[1])
os.chdir(sys.argv[2])
from hatchling.build import build_wheel
build_wheel(sys.argv[3])'

install_all() {
  local wheel
  cd -- "$work"
  make_venv
  install --no-compile"$([[ $installer == pip ]] || printf -- '-bytecode')" --target "$work/backend" -r "$here/locks/build.txt"
  mkdir wheel
  run "$work/venv/bin/python" -I -B -c "$build" "$work/backend" "$checkout" "$work/wheel"
  wheel=$(cd wheel && printf '%s' *.whl)
  # Extras have packages in common, in the same words: each once.
  awk '/^[^ \t]/ { fresh = !seen[$0]++ } fresh' "${locks[@]}" > requirements.txt
  printf './wheel/%s --hash=sha256:%s\n' "$wheel" "$("${sha256[@]}" "wheel/$wheel" | cut -d ' ' -f 1)" >> requirements.txt
  install --compile"$([[ $installer == pip ]] || printf -- '-bytecode')" -r requirements.txt
  rm -rf -- backend wheel cache requirements.txt log
}

set_up() {
  local began=$SECONDS place version
  [[ -d $temp ]] || refuse "RUNNER_TEMP names no folder: this is for a step of GitHub Actions"
  choose_locks
  # Away from the workspace: what lies there (.python-version, uv.toml) chooses nothing.
  cd -- "$temp"
  choose
  place=$temp/sealpipe-venv-$(digest "$installer" "$python" "$python_version")
  tell_debug "installer $installer, Python ${python:-of uv} $python_version, extras ${extras:-none}, in $place"
  if [[ -x $place/bin/sealpipe && -x $place/bin/python ]]; then
    hand_on "$place/bin/sealpipe"
    printf 'sealpipe is set up already\n'
    return
  fi
  # A name that leads nowhere any more.
  if [[ -L $place ]]; then rm -f -- "$place"; fi
  work=$(mktemp -d -- "$place.XXXXXX")
  trap cleared EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  install_all
  version=$(version_of "$work/venv/bin/sealpipe") || refuse "sealpipe was installed, and does not run"
  # One name is made at once or not at all: of two steps at a time, one takes what the other has made.
  if ln -sn -- "${work##*/}/venv" "$place" 2>/dev/null; then work=''; fi
  [[ -x $place/bin/sealpipe ]] || refuse "$place is in the way"
  hand_on "$place/bin/sealpipe"
  printf 'sealpipe %s is set up by %s in %s s\n' "$version" "$installer" "$((SECONDS - began))"
}

case $(uname -s) in
  Linux | Darwin) ;;
  *) refuse "sealpipe runs on Linux and macOS: use a job with runs-on: ubuntu-latest" ;;
esac
if [[ $executable ]]; then use_what_is_there; else set_up; fi
