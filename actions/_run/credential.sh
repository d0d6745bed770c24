# shellcheck shell=bash
# Ends the first step of an action where it has no credential, before anything is installed. Sourced; the step has its
# secrets, so no program is started here.
#   SEALPIPE_ACTION_API_KEY_FILE, SEALPIPE_ACTION_REHEARSE, SEALPIPE_ACTION_ON_MISSING_KEY   inputs
# Appends `outcome` and `error-code` to GITHUB_OUTPUT if there is none; then the other steps do not run.

end() { # CODE OUTCOME KIND MESSAGE
  printf '::%s title=sealpipe::%s\n' "$3" "$4" >&2
  printf 'outcome=%s\nerror-code=%s\n' "$2" "${1#0}" >> "${GITHUB_OUTPUT:-/dev/null}"
  exit "$1"
}

has_credential() {
  [[ ${SEALPIPE_ACTION_REHEARSE:-} == *true* || -n ${SEALPIPE_ACTION_API_KEY_FILE:-} ]] ||
    [[ -n ${SEALPIPE_API_KEY:-}${SEALPIPE_API_KEY_FILE:-}${SEALPIPE_CONFIG:-} ]] ||
    [[ -f ${XDG_CONFIG_HOME:-${HOME:-}/.config}/sealpipe/config.toml ]]
}

case ${SEALPIPE_ACTION_ON_MISSING_KEY:-fail} in
  fail | skip) ;;
  *) end 2 failed error 'the input on-missing-key must be one of fail, skip' ;;
esac
if ! has_credential; then
  reason='the step has no credential: set env: SEALPIPE_API_KEY'
  if [[ -n ${SEALPIPE_API_KEY+set} ]]; then
    reason="SEALPIPE_API_KEY is empty: runs from forks and of Dependabot get empty secrets; otherwise check the secret's name"
  fi
  if [[ ${SEALPIPE_ACTION_ON_MISSING_KEY:-fail} == skip ]]; then end 0 skipped notice "skipped: $reason"; fi
  end 2 failed error "$reason (on-missing-key: skip skips the step instead)"
fi
