#!/usr/bin/env bash
# Prints the extras that the references of an action need, comma-separated: before there is a Python to ask.
# SEALPIPE_ACTION_EXTRAS names more of them, SEALPIPE_ACTION_REFERENCES is text with references in it,
# SEALPIPE_ACTION_FIELDS_FROM and SEALPIPE_ACTION_FILE are files of such text. Named stores count, too
# (SEALPIPE_STORE__NAME__PLUGIN).
set -euo pipefail

# The name before the colon, and the extra of pyproject.toml (held to the plugins' own descriptors by a test).
table='age=age azure-kv=azure gcp-sm=gcp vault=vault aws-sm=aws aws-ssm=aws op=op keepass=keepass keyring=keyring github-secret=github postgres-role=postgres'

text=${SEALPIPE_ACTION_REFERENCES:-}
for file in "${SEALPIPE_ACTION_FIELDS_FROM:-}" "${SEALPIPE_ACTION_FILE:-}"; do
  if [[ -f $file && -r $file ]]; then text+=$'\n'$(cat -- "$file"); fi
done
for name in $(compgen -A export SEALPIPE_STORE__ || true); do
  [[ $name == *__PLUGIN ]] && text+=$'\n'"${!name}:"
done

found=,${SEALPIPE_ACTION_EXTRAS:-},
found=${found//[[:space:]]/}
add() { [[ $found == *",$1,"* ]] || found+="$1,"; }

for row in $table; do
  pattern="(^|[^A-Za-z0-9._-])${row%%=*}:"
  if [[ $text =~ $pattern ]]; then add "${row##*=}"; fi
done
if [[ $text =~ format=yaml ]]; then add yaml; fi
if [[ ${SEALPIPE_ACTION_REHEARSE:-} == true ]]; then add rehearsal; fi
if [[ ${SEALPIPE_ACTION_FILE:-} =~ \.ya?ml$ ]]; then add yaml; fi
if [[ -n ${SEALPIPE_ACTION_DATABASE:-}${SEALPIPE_BATCH_DATABASE:-} ]]; then add batch; fi

while [[ $found == ,* ]]; do found=${found#,}; done
while [[ $found == *, ]]; do found=${found%,}; done
while [[ $found == *,,* ]]; do found=${found//,,/,}; done
printf '%s\n' "$found"
