#!/usr/bin/env bash
# Prints the extras that the references of an action need, comma-separated: before there is a Python to ask.
# SEALPIPE_ACTION_EXTRAS names more of them, SEALPIPE_ACTION_REFERENCES is text with references in it,
# SEALPIPE_ACTION_FIELDS_FROM a file of such text. Named stores count, too (SEALPIPE_STORE__NAME__PLUGIN).
set -euo pipefail

# The name before the colon, and the extra of pyproject.toml (held to the plugins' own descriptors by a test).
table='vault=vault aws-sm=aws aws-ssm=aws op=op keyring=keyring github-secret=github'

text=${SEALPIPE_ACTION_REFERENCES:-}
if [[ -n ${SEALPIPE_ACTION_FIELDS_FROM:-} && -r ${SEALPIPE_ACTION_FIELDS_FROM:-} ]]; then
  text+=$'\n'$(cat -- "$SEALPIPE_ACTION_FIELDS_FROM")
fi
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

while [[ $found == ,* ]]; do found=${found#,}; done
while [[ $found == *, ]]; do found=${found%,}; done
while [[ $found == *,,* ]]; do found=${found//,,/,}; done
printf '%s\n' "$found"
