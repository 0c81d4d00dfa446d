#!/usr/bin/env bash
# Hashes the file named by INPUT_PATH; compares with INPUT_EXPECTED if it is set. Answers in JSON.
set -euo pipefail

hash=$(sha256sum -- "${INPUT_PATH:?}")
hash=${hash#\\}
hash=${hash%% *}
size=$(stat --format=%s -- "$INPUT_PATH")

matches=null
if [[ -n ${INPUT_EXPECTED:-} ]]; then
  [[ ${INPUT_EXPECTED,,} == "$hash" ]] && matches=true || matches=false
fi
printf '{"sha256":"%s","bytes":%s,"matches":%s}\n' "$hash" "$size" "$matches"
