# shellcheck shell=bash
# What setup.sh keeps to itself. Sourced.

# Nothing that is started is given a secret of the step: only what an installer needs, by name. $1: more names.
keep_only_what_installers_need() {
  local name
  for name in $(compgen -e); do
    case $name in
      PATH | PWD | HOME | USER | LOGNAME | SHELL | LANG | LC_* | TZ | TMPDIR | XDG_* | LD_LIBRARY_PATH | DYLD_*) ;;
      [Hh][Tt][Tt][Pp]_[Pp][Rr][Oo][Xx][Yy] | [Hh][Tt][Tt][Pp][Ss]_[Pp][Rr][Oo][Xx][Yy]) ;;
      [Aa][Ll][Ll]_[Pp][Rr][Oo][Xx][Yy] | [Nn][Oo]_[Pp][Rr][Oo][Xx][Yy]) ;;
      SSL_CERT_FILE | SSL_CERT_DIR | REQUESTS_CA_BUNDLE | CURL_CA_BUNDLE | NETRC | PYENV_*) ;;
      PIP_CONFIG_FILE | PIP_INDEX_URL | PIP_EXTRA_INDEX_URL | PIP_FIND_LINKS | PIP_NO_INDEX) ;;
      PIP_CERT | PIP_CLIENT_CERT | PIP_TRUSTED_HOST | PIP_PROXY | PIP_KEYRING_PROVIDER) ;;
      PIP_DEFAULT_TIMEOUT | PIP_TIMEOUT | PIP_RETRIES | PIP_CACHE_DIR | PIP_NO_CACHE_DIR) ;;
      UV_CONFIG_FILE | UV_NO_CONFIG | UV_INDEX* | UV_DEFAULT_INDEX | UV_EXTRA_INDEX_URL | UV_FIND_LINKS) ;;
      UV_SYSTEM_CERTS | UV_NATIVE_TLS | UV_INSECURE_HOST | UV_KEYRING_PROVIDER | UV_HTTP_* | UV_REQUEST_TIMEOUT) ;;
      UV_CACHE_DIR | UV_NO_CACHE | UV_OFFLINE | UV_CONCURRENT_* | UV_PYTHON_*) ;;
      *) [[ ",${1// /}," == *",$name,"* ]] || unset "$name" 2>/dev/null || export -n "${name?}" ;;
    esac
  done
}

# For a workflow command.
escaped() { local text=${1//'%'/%25} && text=${text//$'\r'/%0D} && printf '%s' "${text//$'\n'/%0A}"; }

# What another program has written: no address with a password, nothing that the runner takes for a command. A runner
# ends a line at a carriage return, too.
harmless() {
  LC_ALL=C tr '\r' '\n' | LC_ALL=C tr -d '\000-\010\013-\037\177' |
    LC_ALL=C sed -E -e 's,(://)[^/[:space:]]*@,\1***@,g' -e 's/##([A-Za-z0-9_.-]*(\[|:))/# #\1/g' -e "s/^/$1: /"
}
